"""Who answers: an exact simulation, in-process devices, report files on one machine or on Spark."""

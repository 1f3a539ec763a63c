"""People to measure on: the paper's data sets and others in files, and the paper's synthetic shapes."""

from ahead_ldp.research.datasets.crowds import Crowd
from ahead_ldp.research.datasets.loading import (
    MissingData,
    Sample,
    data_folder,
    dataset,
    drawn,
    find_source,
    load,
    population_of,
)
from ahead_ldp.research.datasets.synthetic import SHAPES, people, probabilities
from ahead_ldp.research.datasets.tables import DATASETS, Dataset, Source

__all__ = [
    "DATASETS",
    "SHAPES",
    "Crowd",
    "Dataset",
    "MissingData",
    "Sample",
    "Source",
    "data_folder",
    "dataset",
    "drawn",
    "find_source",
    "load",
    "people",
    "population_of",
    "probabilities",
]

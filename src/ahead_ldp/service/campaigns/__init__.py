"""The life of a campaign: its record, its waves, closing, results and audit. No HTTP here."""

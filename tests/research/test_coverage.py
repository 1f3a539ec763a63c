"""`tools.coverage`: the two kinds of intervals are measured each by itself."""

from tools.coverage import measure
from tools.splits import SPLITS


def test_strict_intervals_are_not_the_models():
    setting = next(s for s in SPLITS["tuning"]["1"] if s.name == "gaussian")
    model, strict = (measure(setting, "default", 1.0, 2, intervals=kind) for kind in ("model", "strict"))
    assert strict.half > 1.5 * model.half  # smooth people: what the model assumes is true, and is worth much
    assert strict.error == model.error
    assert model == measure(setting, "default", 1.0, 2)  # what the pages' commands ask for

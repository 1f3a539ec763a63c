"""The parts of the service stand on each other in one order: campaigns are run without HTTP."""

from tests.test_architecture import SOURCE, imports, modules

ORDER = ["store", "screening", "campaigns", "edge", "server", "rehearsal", "dashboard"]


def test_no_part_imports_one_above_it():
    height = {f"ahead_ldp.service.{part}": number for number, part in enumerate(ORDER)}
    parts = [
        (i, [height.get(".".join(name.split(".")[:3])) for name in (i.module, i.target)])
        for i in imports(modules(SOURCE))
    ]
    assert [str(i) for i, (own, other) in parts if None not in (own, other) and other > own] == []

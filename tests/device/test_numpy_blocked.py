"""The device runs where nothing but the standard library and ``ahead_ldp.device`` can be imported.

The package itself may load its hook for pictures, which imports nothing.
"""

import subprocess
import sys
from pathlib import Path

import ahead_ldp

PATH = str(Path(ahead_ldp.__file__).parent.parent)

BLOCK = """
import sys
sys.modules["numpy"] = None

class OnlyDevice:
    def find_spec(self, name, path=None, target=None):
        hook = ("ahead_ldp", "ahead_ldp.estimates", "ahead_ldp.estimates.pictures")
        own = name in hook or (name + ".").startswith("ahead_ldp.device.")
        if not own and name.partition(".")[0] not in sys.stdlib_module_names:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, OnlyDevice())
"""

ANSWER = """
from ahead_ldp.device import *

schema = Schema((Attribute("age", "integer", 18, 33), Attribute("town", "nominal", labels=("Ulm", "Bonn"))))
assert Schema.from_record(parse_canonical(canonical_bytes(schema.record()))) == schema
for name in LAWS:
    record = {
        "type": "question", "version": 1, "campaign": "c0" * 32, "wave": 1, "group": "g0", "tallies": "7a" * 32,
        "epsilon": "1", "attributes": ["town", "age"], "partition": TreeForm(2, "101010000").record(),
        "oracle": LAWS[name].make("1", 6).record(),
    }
    question = check_question(canonical_bytes(record), schema, "c0" * 32, Policy("1"))
    assert question.draw({"age": 99}, SystemWords())[1] == ("town", "age")
    reports = [question.report({"age": age, "town": town}) for age in range(18, 34) for town in ("Ulm", "Bonn")]
    assert decode_batch(encode_batch(question.header, reports), question.header, question.law) == reports
assert not any(m.partition(".")[0] in ("numpy", "random", "secrets") and sys.modules[m] for m in list(sys.modules))
print("answered")
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys\nsys.path.insert(0, {PATH!r})\n"
    return subprocess.run([sys.executable, "-I", "-c", start + code], capture_output=True, text=True, check=False)


def test_a_question_is_answered_with_everything_else_blocked():
    done = run(BLOCK + ANSWER)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "answered\n"


def test_the_block_blocks():
    for module in ("numpy", "numpy.random", "pytest", "ahead_ldp.oracles"):
        done = run(BLOCK + f"import {module}\n")
        assert done.returncode != 0
        assert "Error" in done.stderr

"""Every registered mechanism as a campaign: its tallies are a recount of its exported reports, bit for bit."""

import numpy as np
import pytest

from ahead_ldp.device.canonical import digest, parse_canonical
from ahead_ldp.device.frames import Header
from ahead_ldp.engines.archive import estimate_from_record
from ahead_ldp.engines.collection import count_batch
from ahead_ldp.mechanisms import MECHANISMS
from ahead_ldp.oracles import oracle_of_law
from ahead_ldp.protocol.mechanism import tally_from_record
from tests.service.server.harness import bench

NAMES = sorted(set(MECHANISMS) - {"uni"})  # it asks nobody
TWO = ["age=integer,0,7", "pay=integer,0,7"]


def people(names, n, seed):
    rng = np.random.default_rng(seed)
    return [{name: int(x) for name, x in zip(names, row, strict=True)} for row in rng.binomial(7, 0.4, (n, len(names)))]


@pytest.mark.parametrize("name", NAMES)
def test_a_campaign_of_every_mechanism_recounts(tmp_path, name):
    cls = MECHANISMS[name]
    attributes = TWO[:1] if cls.most_attributes == 1 else TWO
    names = [text.partition("=")[0] for text in attributes]
    with bench(tmp_path) as service:
        campaign = service.opened(attributes=attributes, method={"name": name}, minimum=1, users=1000)
        service.run(campaign, people(names, 250, seed=3))
        assert service.state(campaign)["state"] == "finished"
        chain = service.call("GET", f"/campaigns/{campaign}/chain", "public").json()
        counted = 0
        for wave in chain["waves"]:
            for group in wave["groups"]:
                path = f"/campaigns/{campaign}/waves/{wave['number']}/reports?group={group['group']}"
                data = service.call("GET", path).content
                question = digest(group["question"])
                oracle = oracle_of_law(group["question"]["oracle"])
                again = count_batch(data, Header(campaign, question), oracle)
                assert again == tally_from_record(group["tally"], question)
                counted += again.n
        assert counted == 250 * len(chain["waves"])
        record = parse_canonical(service.call("GET", f"/campaigns/{campaign}/tallies", "analyst").content)
        estimate = estimate_from_record(record)
        results = service.call("GET", f"/campaigns/{campaign}/results", "analyst").json()
        shares = [row["share"] for row in results["attributes"][0]["histogram"]]
        np.testing.assert_allclose(shares, estimate.histogram(names[0]).values, atol=1e-12)
        assert not any(wave["hold"] for wave in results["screens"])

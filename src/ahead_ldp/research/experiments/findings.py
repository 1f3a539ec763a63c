"""What the paper writes about its figures, sentence by sentence, and the rule that decides whether ours agree."""

from __future__ import annotations

from ahead_ldp.research.experiments import heat_rules as heat
from ahead_ldp.research.experiments import rules
from ahead_ldp.research.experiments.plan import Panel
from ahead_ldp.research.experiments.rules import HALF_DECADE, pairs_of
from ahead_ldp.research.experiments.verdicts import Finding


def _larger_domain(name: str) -> str | None:
    shape, side = name.split()
    return {"256": f"{shape} 1024", "64": f"{shape} 128"}.get(side)


def _more_users(name: str) -> str | None:
    *rest, users = name.split()
    return " ".join([*rest, {"1000000": "10000000", "20000": "100000"}.get(users, "-")])


def _laplacian(name: str) -> str | None:
    return name.replace("gaussian", "laplacian") if "gaussian" in name else None


def _most(name: str) -> str | None:
    """The Laplacian beside the Gaussian, for the larger number of users alone."""
    return _laplacian(name) if name.endswith(("10000000", "100000")) else None


def _by_panel(panel: Panel) -> str:
    return "AHEAD" if panel.name.endswith(" 2") else "LLE"


_RIVALS = ("HIO", "DHT", "CALM", "Uni")

FINDINGS = (
    Finding(
        "best-1-dim", "fig5", "The MSE of AHEAD is smaller than its counterparts on all four data sets.",
        "least in every panel, clearly lost nowhere", rules.smallest("fig5", "AHEAD", _RIVALS),
    ),
    Finding(
        "salaries", "fig5", "On Salaries AHEAD's MSE is almost one order of magnitude below the state of the art.",
        "best rival / AHEAD at least 10^0.5", rules.factor("fig5", "salaries", "AHEAD", _RIVALS, HALF_DECADE, 1e9),
    ),
    Finding(
        "loan", "fig5", "On Loan AHEAD is slightly better than DHT.",
        "DHT / AHEAD between 1 and 10^0.5, nowhere outside by a quarter",
        rules.factor("fig5", "loan", "AHEAD", ("DHT",), 1.0, HALF_DECADE),
    ),
    Finding(
        "two-orders", "fig5", "AHEAD's errors are smaller than previous works' by up to two orders of magnitude.",
        "somewhere a previous method / AHEAD at least 10^1.5",
        rules.best_factor(("fig5", "fig6"), ("AHEAD",), ("HIO", "DHT", "CALM", "HDG"), 10**1.5), ("uni",), "fig6",
    ),
    Finding(
        "best-2-dim", "fig6", "AHEAD outperforms HDG throughout the privacy budgets.",
        "least in every panel, clearly lost nowhere", rules.smallest("fig6", "AHEAD", ("HDG",)),
    ),
    Finding(
        "domain-2-dim", "fig6", "The MSE of AHEAD almost does not vary across domain sizes.",
        "ratio of the two domains within a factor of 2, below Uni",
        rules.same_across("AHEAD", pairs_of("fig6", _larger_domain)), ("uni",),
    ),
    Finding(
        "correlation-ahead", "fig7", "The MSE of AHEAD almost does not change with different correlations.",
        "largest / smallest within a factor of 2, below Uni", rules.steady("fig7", "AHEAD"),
    ),
    Finding(
        "correlation-hdg", "fig7", "HDG becomes worse with a stronger correlation.",
        "rank correlation at least 0.9, last / first at least 2", rules.rises("fig7", "HDG", 2.0), ("shuffled",),
    ),
    Finding(
        "crossing", "fig7", "Correlation r = 0.5 seems to be the intersection of HDG and AHEAD.",
        "HDG rises above AHEAD between r = 0.3 and 0.7", rules.crosses("fig7", "HDG", "AHEAD", 0.3, 0.7),
    ),
    Finding(
        "lle-de", "fig8", "AHEAD with LLE obtains lower MSEs than DE.",
        "DE / LLE above 1 in every panel, and at two thirds of its points", rules.below_in_mean("fig8", "LLE", "DE"),
    ),
    Finding(
        "distributions-ahead", "fig8", "AHEAD behaves similarly on different data sets (10^7 users).",
        "Laplacian / Gaussian within a factor of 2, below Uni",
        rules.same_across("LLE", pairs_of("fig8", _most)), ("uni",),
    ),
    Finding(
        "distributions-hdg", "fig8", "The MSEs of HDG are larger on the Laplacian than on the Gaussian distribution.",
        "geometric mean over ε larger, for every number of users",
        rules.larger_across("HDG", None, pairs_of("fig8", _laplacian)), ("shuffled",),
    ),
    Finding(
        "users-high-dim", "fig8", "The superiority of AHEAD decreases with fewer user records.",
        "HDG / LLE larger with more users, and above 1, in every panel",
        rules.larger_across("HDG", "LLE", pairs_of("fig8", _more_users)),
    ),
    Finding(
        "dimension", "fig9", "AHEAD is robust to the number of attributes: almost consistent MSEs.",
        "largest / smallest within 10^0.5, below Uni", rules.steady("fig9", "LLE", HALF_DECADE),
    ),
    Finding(
        "large-theta", "fig10", "On Loan a threshold above 0.4096 makes the MSE ten times the minimum.",
        "MSE at 0.4096 the largest up to there, at least 10 times the least",
        heat.large_threshold("loan", 0.4096, 10.0),
    ),
    Finding(
        "small-theta", "fig10", "On BlackFriday the MSE hardly changes when the threshold is less than 0.0064.",
        "largest / smallest within a factor of 2, below Uni", heat.small_threshold("blackfriday", 0.0064),
    ),
    Finding(
        "best-theta", "fig10", "At ε = 1.5 the best threshold is 0.0256 on BlackFriday and 0.1024 on Salaries.",
        "within a factor of 2 of the printed ones",
        heat.best_thresholds_differ(1.5, {"blackfriday": 0.0256, "salaries": 0.1024}), ("shuffled",),
    ),
    Finding(
        "star", "fig10", "The theoretical threshold is close to the empirically observed optimum.",
        "MSE at the star within a factor of 2 of the least", heat.near_best_threshold(2.0),
    ),
    Finding(
        "leaves-1-dim", "fig11", "The distribution of leaves is almost the same as the distribution of frequencies.",
        "rank correlation over 64 bins at least 0.5", heat.leaves_follow("fig11", 0.5), ("shuffled",),
    ),
    Finding(
        "leaves-2-dim", "fig12", "The distribution of leaves is almost the same as the distribution of frequencies.",
        "rank correlation over 32 x 32 bins at least 0.5", heat.leaves_follow("fig12", 0.5), ("shuffled",),
    ),
    Finding(
        "real-hdg", "fig13", "AHEAD outperforms HDG throughout most cases.",
        "below HDG at two thirds of the points", rules.mostly_below("fig13", _by_panel, "HDG"),
    ),
    Finding(
        "real-lle-de", "fig13", "AHEAD with LLE obtains lower MSEs than DE.",
        "DE / LLE above 1 in every panel, and at two thirds of its points", rules.below_in_mean("fig13", "LLE", "DE"),
    ),
    Finding(
        "real-correlation", "fig13", "On Loan AHEAD's superiority increases with stronger correlation.",
        "HDG / AHEAD grows from 2-dim to 3-dim to 5-dim, to above 1",
        rules.superiority_grows("fig13", [("loan 2", "AHEAD"), ("loan 3", "LLE"), ("loan 5", "LLE")], "HDG"),
    ),
    Finding(
        "enough-users", "fig14", "At ε = 1 AHEAD needs 5,000 users for an MSE of at most 10^-2.",
        "AHEAD at most 10^-2 with 5,000 users and more",
        heat.enough_users("fig14", ("AHEAD",), 1.0, 1e-2, 5_000, True),
    ),
    Finding(
        "more-users", "fig14", "Previous works need more than 10,000 users for the same accuracy.",
        "HIO and DHT above 10^-2 with 10,000 users and fewer",
        heat.enough_users("fig14", ("HIO", "DHT"), 1.0, 1e-2, 10_000, False), ("shuffled",),
    ),
    Finding(
        "exchange", "fig14", "Pairs of N and ε with the same N ε² give similar MSEs, for AHEAD, HIO and DHT.",
        "N = 10^6, ε = 0.1 and N = 10^4, ε = 1 within 0.3 decades; AHEAD below Uni",
        heat.exchange("fig14", ("AHEAD", "HIO", "DHT"), (0.1, 10**6), (1.0, 10**4), 0.3),
    ),
    Finding(
        "printed", "fig14", "On Zipf AHEAD's MSE is 10^-3.0809 (N = 10^6, ε = 0.1) and 10^-3.0563 (N = 10^4, ε = 1).",
        "both within 0.3 decades",
        heat.printed("fig14", "zipf, |d| = 256", "AHEAD", [(0.1, 10**6, -3.0809), (1.0, 10**4, -3.0563)], 0.3),
    ),
    Finding(
        "domain-1-dim", "fig15", "HIO's and DHT's MSEs tend to increase with the domain; AHEAD is more robust.",
        "AHEAD's growth below HIO's and DHT's, which are above 1; AHEAD below Uni",
        heat.robust("fig15", "AHEAD", ("HIO", "DHT")),
    ),
    Finding(
        "skewness", "fig16", "At ε <= 0.1 and N = 10^5 AHEAD's MSE tends to decrease with skewness.",
        "rank correlation at most -0.5, mean below Uni", heat.falls_with_skewness("fig16", "N = 10^5", 0.1),
    ),
    Finding(
        "skewness-fades", "fig16", "With larger privacy budgets or user scales the impact of skewness fades.",
        "largest / smallest over skewness falls, below Uni", heat.skewness_fades("fig16"), ("uni",),
    ),
    Finding(
        "correlation-lle-3", "fig17", "The MSE of AHEAD (LLE) behaves consistently across correlations, 3-dim.",
        "largest / smallest within a factor of 2, below Uni", rules.steady("fig17", "LLE"),
    ),
    Finding(
        "correlation-lle-5", "fig18", "The MSE of AHEAD (LLE) behaves consistently across correlations, 5-dim.",
        "largest / smallest within a factor of 2, below Uni", rules.steady("fig18", "LLE"),
    ),
    Finding(
        "hdg-fades", "fig18", "As the number of attributes increases, the impact of correlation on HDG decreases.",
        "HDG rises with r in 3-dim; largest / smallest over r smaller in 5-dim, in every panel",
        rules.fades(("fig17", "fig18"), "HDG"), ("shuffled",), "fig17",
    ),
)  # fmt: skip

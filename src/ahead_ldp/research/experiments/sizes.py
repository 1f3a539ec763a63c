"""How large the evaluation is: the paper's grid, and a small one of the same form."""

from __future__ import annotations

from dataclasses import dataclass

MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Sizes:
    """The values that are varied. Where the paper's text gives a number it stands in FULL; see docs/evaluation.md."""

    name: str
    repeats: int
    default_repeats: int  # of this package's default beyond Figure 5: it takes longer than the paper's methods
    queries: int
    epsilons: tuple[float, ...]  # of the curves
    correlations: tuple[float, ...]
    thetas: tuple[float, ...]
    theta_epsilons: tuple[float, ...]
    heat_epsilons: tuple[float, ...]  # eight with user scales and skewness
    domain_epsilons: tuple[float, ...]  # seven with domain sizes
    scales: tuple[int, ...]
    domains: tuple[int, ...]
    skews: dict[str, tuple[float, ...]]
    skew_users: tuple[int, ...]
    pairs: tuple[int, int]  # codes of each of two attributes
    users_2: int
    users_m: tuple[int, int]
    dimensions: tuple[int, ...]
    side: int  # codes of each of three or more attributes, and of real data in Figure 13
    most_real: int | None  # people of a real data set at most


FULL = Sizes(
    name="full",
    repeats=20,
    default_repeats=4,
    queries=200,
    epsilons=(0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5),
    correlations=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    thetas=(0.0, *(0.0001 * 2**k for k in range(14)), 1.0),
    theta_epsilons=(0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5),
    heat_epsilons=(0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5),
    domain_epsilons=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5),
    scales=(1_000, 5_000, 10_000, 50_000, 100_000, 500_000, MILLION, 5 * MILLION, 10 * MILLION),
    domains=(32, 64, 128, 256, 512, 1024, 2048, 4096),
    skews={
        "gaussian": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        "laplacian": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0),
    },
    skew_users=(100_000, MILLION, 10 * MILLION),
    pairs=(256, 1024),
    users_2=10 * MILLION,
    users_m=(MILLION, 10 * MILLION),
    dimensions=(3, 4, 5, 6, 7, 8, 9, 10),
    side=64,
    most_real=None,
)

QUICK = Sizes(
    name="quick",
    repeats=2,
    default_repeats=1,
    queries=40,
    epsilons=(0.3, 1.5),
    correlations=(0.2, 0.8),
    thetas=(0.0, 0.0004, 0.0064, 0.0256, 0.1024, 0.4096),
    theta_epsilons=(1.5,),
    heat_epsilons=(0.1, 1.0),
    domain_epsilons=(0.1, 1.0),
    scales=(1_000, 5_000, 10_000, MILLION),
    domains=(32, 256, 2048),
    skews={"gaussian": (0.0, 0.9), "laplacian": (0.0, 2.0)},
    skew_users=(100_000, 10 * MILLION),
    pairs=(64, 128),
    users_2=MILLION,
    users_m=(20_000, 100_000),
    dimensions=(3, 5),
    side=16,
    most_real=150_000,
)
SIZES = {sizes.name: sizes for sizes in (FULL, QUICK)}

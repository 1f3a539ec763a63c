"""The figures of the paper's evaluation, at any size. docs/evaluation.md says which numbers the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ahead_ldp.research.datasets.tables import DATASETS
from ahead_ldp.research.experiments.plan import Cell, Data, Figure, Line, Panel, Point, paper_theta

MILLION = 10**6
FIXED_EPSILON = 1.1  # Sec. 5.3, 5.4, App. G and J.4
R = 0.8  # Sec. 5.3, 5.4
ONE = {
    "loan": ("loan_amnt", 256),
    "financial": ("amount", 512),
    "blackfriday": ("Purchase", 1024),
    "salaries": ("TotalPay", 2048),
}
MOST_MARGINAL = 1 << 16  # cells that CALM's reports can list; beyond, it does not scale
SKEW_SIDE = 1024  # the size that gives the two thresholds printed in App. J.3


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
    pairs=(32, 64),
    users_2=200_000,
    users_m=(20_000, 100_000),
    dimensions=(3, 5),
    side=8,
    most_real=150_000,
)


def make_plan(sizes: Sizes, names: Iterable[str] = ()) -> list[Figure]:
    """The figures of these names, or all, at some size."""
    wanted = list(names)
    if unknown := [name for name in wanted if name not in FIGURES]:
        raise ValueError(f"expected figures among {', '.join(FIGURES)}, got {', '.join(unknown)}")
    return [make(sizes) for name, make in FIGURES.items() if not wanted or name in wanted]


def _cell(sizes: Sizes, data: Data, method: str, epsilon: float) -> Cell:
    repeats = sizes.default_repeats if method == "default" else sizes.repeats
    return Cell(data, method, epsilon, repeats, sizes.queries)


def _lines(
    sizes: Sizes, methods: Iterable[str], at: Iterable[tuple[float, Data, float]], hidden: Iterable[str] = ()
) -> tuple[Line, ...]:
    """One line a method over (x, people, epsilon)."""
    places, unseen = list(at), tuple(hidden)
    return tuple(
        Line(method, tuple(Point(x, _cell(sizes, data, method, e)) for x, data, e in places), method in unseen)
        for method in (*methods, *unseen)
    )


def _over_epsilon(sizes: Sizes, data: Data, methods: Iterable[str], hidden: Iterable[str] = ()) -> tuple[Line, ...]:
    return _lines(sizes, methods, [(e, data, e) for e in sizes.epsilons], hidden)


def _real(sizes: Sizes, name: str, columns: tuple[str, ...], size: int) -> Data:
    users = DATASETS[name].users
    n = users if sizes.most_real is None else min(users, sizes.most_real)
    return Data(name, (size,) * len(columns), n, columns)


def _one(sizes: Sizes, name: str) -> Data:
    column, size = ONE[name]
    return _real(sizes, name, (column,), size)


def _power(n: int) -> str:
    digits = len(str(n)) - 1
    lead = n // 10**digits
    return f"{'' if lead == 1 else f'{lead}·'}10^{digits}" if n == lead * 10**digits else f"{n:,}"


def fig5(sizes: Sizes) -> Figure:
    """One attribute, four data sets; here our default has as many repetitions as the others."""
    sizes = replace(sizes, default_repeats=sizes.repeats)
    methods = ("Uni", "HIO", "DHT", "CALM", "AHEAD", "default")
    panels = [
        Panel(name, f"{DATASETS[name].title}, |D| = {ONE[name][1]}", _over_epsilon(sizes, _one(sizes, name), methods))
        for name in ONE
    ]
    return Figure("fig5", "One attribute: four data sets", "bars", "privacy budget ε", tuple(panels))


def _pairs(sizes: Sizes) -> list[tuple[str, int, str, str]]:
    return [
        (shape, side, f"{shape} {side}", f"2-dim {shape.capitalize()}, |D| = {side}²")
        for shape in ("laplacian", "gaussian")
        for side in sizes.pairs
    ]


def fig6(sizes: Sizes) -> Figure:
    """Two attributes, varying epsilon."""
    panels = []
    for shape, side, name, title in _pairs(sizes):
        data = Data(shape, (side, side), sizes.users_2, r=R)
        unseen = ("Uni", "CALM") if side**2 <= MOST_MARGINAL else ("Uni",)
        panels.append(Panel(name, title, _over_epsilon(sizes, data, ("HDG", "AHEAD", "default"), unseen)))
    return Figure(
        "fig6", f"Two attributes, N = {_power(sizes.users_2)}, r = 0.8", "lines", "privacy budget ε", tuple(panels)
    )


def fig7(sizes: Sizes) -> Figure:
    """Two attributes, varying correlation."""
    panels = []
    for shape, side, name, title in _pairs(sizes):
        at = [(r, Data(shape, (side, side), sizes.users_2, r=r), FIXED_EPSILON) for r in sizes.correlations]
        panels.append(Panel(name, title, _lines(sizes, ("HDG", "AHEAD", "default"), at, ("Uni",))))
    return Figure(
        "fig7", f"Two attributes, ε = 1.1, N = {_power(sizes.users_2)}", "lines", "correlation r", tuple(panels)
    )


def _many(sizes: Sizes, m: int) -> list[tuple[str, int, str, str]]:
    return [
        (shape, n, f"{m} {shape} {n}", f"{m}-dim {shape.capitalize()}, N = {_power(n)}")
        for shape in ("laplacian", "gaussian")
        for n in sizes.users_m
    ]


def _high(m: int) -> tuple[str, ...]:
    return ("HDG", *(["DE"] if m == 3 else []), "LLE", "default")


def fig8(sizes: Sizes) -> Figure:
    """Three and five attributes, varying epsilon."""
    panels = []
    for m in (3, 5):
        for shape, n, name, title in _many(sizes, m):
            data = Data(shape, (sizes.side,) * m, n, r=R)
            panels.append(Panel(name, title, _over_epsilon(sizes, data, _high(m), ("Uni",))))
    return Figure(
        "fig8",
        f"Three and five attributes, |D| = {sizes.side} each, r = 0.8",
        "lines",
        "privacy budget ε",
        tuple(panels),
    )


def fig9(sizes: Sizes) -> Figure:
    """Three to ten attributes."""
    panels = []
    for shape in ("laplacian", "gaussian"):
        for n in sizes.users_m:
            at = [(m, Data(shape, (sizes.side,) * m, n, r=R), FIXED_EPSILON) for m in sizes.dimensions]
            lines = _lines(sizes, ("HDG", "LLE", "default"), [(float(m), data, e) for m, data, e in at], ("Uni",))
            panels.append(Panel(f"{shape} {n}", f"{shape.capitalize()}, N = {_power(n)}, |D| = {sizes.side}^m", lines))
    return Figure("fig9", "Number of attributes, ε = 1.1, r = 0.8", "lines", "attributes m", tuple(panels))


def fig10(sizes: Sizes) -> Figure:
    """The threshold, without post-processing; the line "star" has the paper's own."""
    panels = []
    for name in ONE:
        data, lines = _one(sizes, name), []
        for e in sizes.theta_epsilons:
            cell = Cell(data, "unprocessed", e, sizes.repeats, sizes.queries)
            points = [Point(theta, replace(cell, theta=theta)) for theta in sizes.thetas]
            lines += [Line(f"ε = {e:g}", tuple(points)), Line(f"star {e:g}", (Point(paper_theta(data, e), cell),))]
        base = Cell(data, "Uni", sizes.theta_epsilons[-1], sizes.repeats, sizes.queries)
        lines.append(Line("Uni", (Point(0.0, base),), hidden=True))
        panels.append(Panel(name, f"{DATASETS[name].title}, |D| = {ONE[name][1]}", tuple(lines)))
    return Figure("fig10", "The threshold, without post-processing", "theta", "threshold θ", tuple(panels))


def _leaf_panel(sizes: Sizes, data: Data, name: str, title: str) -> Panel:
    cell = Cell(data, "AHEAD", FIXED_EPSILON, sizes.repeats, sizes.queries, task="leaves")
    return Panel(name, f"{title}, θ = {paper_theta(data, FIXED_EPSILON):.3f}", (Line("AHEAD", (Point(0.0, cell),)),))


def fig11(sizes: Sizes) -> Figure:
    """Leaves of one attribute's tree."""
    panels = [
        _leaf_panel(sizes, _one(sizes, name), name, f"{DATASETS[name].title}, |D| = {ONE[name][1]}") for name in ONE
    ]
    return Figure(
        "fig11", "Where AHEAD's leaves are: one attribute, ε = 1.1", "leaves", "code", tuple(panels), "share, %"
    )


def fig12(sizes: Sizes) -> Figure:
    """Leaves of two attributes' tree."""
    panels = [
        _leaf_panel(sizes, Data(s, (d, d), sizes.users_2, r=R), name, title) for s, d, name, title in _pairs(sizes)
    ]
    return Figure(
        "fig12", "Where AHEAD's leaves are: two attributes, ε = 1.1", "leaves", "code", tuple(panels), "share, %"
    )


def fig13(sizes: Sizes) -> Figure:
    """Real data, two, three and five attributes."""
    panels = []
    for name in ("salaries", "blackfriday", "loan"):
        for m in (2, 3, 5):
            data = _real(sizes, name, DATASETS[name].columns[:m] if name != "loan" else _LOAN[:m], sizes.side)
            methods = ("HDG", "AHEAD", "default") if m == 2 else _high(m)
            panels.append(
                Panel(f"{name} {m}", f"{m}-dim {DATASETS[name].title}", _over_epsilon(sizes, data, methods, ("Uni",)))
            )
    return Figure("fig13", f"Real data, |D| = {sizes.side} each", "lines", "privacy budget ε", tuple(panels))


_LOAN = ("loan_amnt", "int_rate", "installment", "total_pymnt", "last_pymnt_amnt")


def _heat(sizes: Sizes, method: str, at: Iterable[tuple[float, float, Data]], hidden: bool = False) -> Line:
    """Cells over (epsilon, other axis)."""
    points = tuple(Point(e, _cell(sizes, data, method, e), y) for e, y, data in at)
    return Line(method, points, hidden)


def _heats(sizes: Sizes, title: str, at: list[tuple[float, float, Data]], methods: Iterable[str]) -> Panel:
    lines = [_heat(sizes, method, at) for method in methods]
    return Panel(title.lower(), title, (*lines, _heat(sizes, "Uni", at, True)))


_COMPARED = ("AHEAD", "HIO", "DHT", "default")


def fig14(sizes: Sizes) -> Figure:
    """User scale and epsilon."""
    panels = []
    for shape, side in (("zipf", 256), ("cauchy", 1024)):
        at = [(e, float(n), Data(shape, (side,), n)) for n in sizes.scales for e in sizes.heat_epsilons]
        panels.append(_heats(sizes, f"{shape.capitalize()}, |D| = {side}", at, _COMPARED))
    return Figure("fig14", "User scale and privacy budget", "heat", "privacy budget ε", tuple(panels), "users N")


def fig15(sizes: Sizes) -> Figure:
    """Domain size and epsilon."""
    panels = []
    for shape in ("zipf", "cauchy"):
        at = [(e, float(d), Data(shape, (d,), 100_000)) for d in sizes.domains for e in sizes.domain_epsilons]
        panels.append(_heats(sizes, f"{shape.capitalize()}, N = 10^5", at, _COMPARED))
    return Figure(
        "fig15", "Domain size and privacy budget", "heat", "privacy budget ε", tuple(panels), "domain size |D|"
    )


def fig16(sizes: Sizes) -> Figure:
    """Skewness and epsilon."""
    panels = []
    for shape, skews in sizes.skews.items():
        for n in sizes.skew_users:
            at = [(e, s, Data(shape, (SKEW_SIDE,), n, skew=s)) for s in skews for e in sizes.heat_epsilons]
            panels.append(_heats(sizes, f"{shape.capitalize()}, N = {_power(n)}", at, ("AHEAD", "default")))
    return Figure(
        "fig16", "Skewness and privacy budget, |D| = 1024", "heat", "privacy budget ε", tuple(panels), "skewness"
    )


def _correlation(sizes: Sizes, number: str, m: int) -> Figure:
    panels = []
    for shape, n, name, title in _many(sizes, m):
        at = [(r, Data(shape, (sizes.side,) * m, n, r=r), FIXED_EPSILON) for r in sizes.correlations]
        panels.append(Panel(name, title, _lines(sizes, _high(m), at, ("Uni",))))
    word = {3: "Three", 5: "Five"}[m]
    return Figure(number, f"{word} attributes: correlation, ε = 1.1", "lines", "correlation r", tuple(panels))


def fig17(sizes: Sizes) -> Figure:
    """Three attributes, varying correlation."""
    return _correlation(sizes, "fig17", 3)


def fig18(sizes: Sizes) -> Figure:
    """Five attributes, varying correlation."""
    return _correlation(sizes, "fig18", 5)


FIGURES = {
    make.__name__: make
    for make in (fig5, fig6, fig7, fig8, fig9, fig10, fig11, fig12, fig13, fig14, fig15, fig16, fig17, fig18)
}

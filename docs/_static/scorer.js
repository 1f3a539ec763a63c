/* How the search orders what it finds (Sphinx's html_search_scorer). Where two pages match equally well, a page that
   teaches comes before one that explains, and pages for those who work on the software come last. Sphinx puts pages
   that match equally in the order of the alphabet, in which the decisions ("001: ...") are first. */
var Scorer = {
  // The pages of the section "How-to guides" that stand in no folder of their own, and those of "Project".
  guides: ["schema", "planning", "datasets", "campaigns", "browser", "client", "tokens", "analysis", "batch", "spark",
    "scale", "deploy", "operations"],
  project: ["architecture", "departures", "proofs", "evaluation", "published-code", "benchmarks"],
  score: (result) => {
    const [page, , , , score] = result;
    const folder = page.split("/")[0];
    if (["tutorials", "guides"].includes(folder) || Scorer.guides.includes(page)) return score + 1;
    if (["project", "decisions", "derivations"].includes(folder) || Scorer.project.includes(page)) return score - 4;
    if (["methods", "leaderboard"].includes(folder)) return score - 1;
    return score;
  },
  // What follows are Sphinx's own numbers, but for the names of the API: a name that merely contains the word comes
  // after the pages that have it in their title.
  objNameMatch: 11,
  objPartialMatch: 0,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

/* The terms of search_terms.py come first; those of questions lead to the answer. Guides come before the reference, and the reference before decisions and the changelog. */
"use strict";

const RANKS = [
  [/^faq$/, 7],
  [/^(tutorial|concepts|install|tuning|concurrency|error-index|features)$/, 4],
  [/^(how-to|cookbook)\//, 5],
  [/^how-to\/(spark|sharing|from-deltalake)/, -3],
  [/^(adr\/|changelog|explanation|extending|draft-types)/, -14],
  [/^(benchmarks|upgrading|how-we-know|deltalog-and-|collations)/, -4],
];

var Scorer = {
  score: (item) => {
    const [page, title, , , score, , kind] = item;
    if (kind === "index") {
      if (page !== "faq") item[2] = ""; // the page itself, which is then listed only once
      return score + 20;
    }
    const rank = RANKS.reduce((sum, [pages, more]) => sum + (pages.test(page) ? more : 0), 0);
    const isPublic = !/^deltalog\.(table|catalogs|spark|statements|sharing|data)\./.test(title);
    return score + rank - (kind === "object" && !isPublic ? 8 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

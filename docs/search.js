"use strict";
// How the search orders pages: Sphinx's own scores, and where the glossary and a page are found by
// the same keyword, the page comes first.
var Scorer = {
  score: ([, , anchor, , score]) => (anchor.startsWith("#term-") ? score - 1 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

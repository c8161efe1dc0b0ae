// What Sphinx's search ranks by: chapters and terms in the order that it finds, the library's symbols after them all.
var Scorer = {
  score: ([page, title, anchor, description, score]) => (page === "reference" ? score - 1000 : score),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0, // these as Sphinx has them
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};

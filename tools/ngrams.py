"""Write book/records/ngrams: what tables of counts make of tiny Shakespeare, which a trained model has to beat.

    python tools/ngrams.py             # finds the text as fourierqk.shakespeare() does; set FOURIERQK_DATA to name it

Run it from a commit without changes, or the record says otherwise.
"""
from pathlib import Path

from fourierqk.data import Corpus, shakespeare
from fourierqk.losses import honest_loss, ordered_loss
from fourierqk.ngram import NGram
from fourierqk.records import provenance
from fourierqk.storage import write_json

__all__ = ["main", "measure"]

FOLDER = Path(__file__).resolve().parents[1] / "book" / "records" / "ngrams"
ORDERS = (1, 2, 3)
LENGTH = 128  # tokens of a window, as in the studies on this text


def measure(corpus: Corpus) -> dict:
    """The record of a text: the losses of each order, on the windows that trained models are judged on."""
    tables = {order: NGram(corpus.train, len(corpus.vocab), order) for order in ORDERS}
    losses = {
        str(order): {
            "ordered": ordered_loss(table, corpus, LENGTH).as_dict(),
            "honest": honest_loss(table, corpus, LENGTH).as_dict(),
        }
        for order, table in tables.items()
    }
    return {"corpus": {"name": corpus.name, "sha256": corpus.sha256}, "length": LENGTH, "losses": losses}


def main() -> None:
    corpus = shakespeare()
    FOLDER.mkdir(exist_ok=True)
    write_json(FOLDER / f"{corpus.name}.json", measure(corpus) | provenance())
    print(f"wrote {FOLDER / corpus.name}.json")


if __name__ == "__main__":
    main()

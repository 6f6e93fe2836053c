"""Sentences of the core that name an option of the command line, in the words of the pages: box or button instead."""

from __future__ import annotations

#: (phrase with the option, what a page says for it); the longer ones first.
OPTION_WORDS = (
    ("Open it here: damaged members are named, and --salvage writes", "Open it here: the Convert page writes"),
    ("; --salvage writes those", "; the Convert page writes those"),
    ("or pass --salvage to write what is whole", 'or tick "Leave out …" on the Convert page to write what is whole'),
    ("`convert --salvage` writes", "The Convert page writes"),
    ("`repair --partial` under", "the Repair page under"),
    ("pass --accept optimizer-groups; else", 'tick the box "The optimizer\'s groups were made by kind"; else'),
    (", or pass --overwrite", ""),
    ("; --digest does", "; fetch the whole file for it"),
    ("Pass --state.", "Choose one of them on the page."),
    ("Say with --state which one is meant.", "Choose one of them on the page."),
    ("(--partial)", '("A part is enough" on the Repair page)'),
    ("(--with-optimizer)", '("With its optimizer" on the Repair page)'),
    (": --target code:model.py:build", ", which runs it"),
    ("ask for a box, --box 1 for the surest", "explain one of its boxes"),
    ("ask for the pixels of a class, --pixels-of", "explain the pixels of a class"),
    ("Leave --fuse out for a grid", "Choose a grid instead"),
    (
        ": --input-size 3x224x224, 128 for so many numbers or tokens, or --input NAME=SHAPE:DTYPE",
        " on the command line",
    ),
    (": --input-size 128", " on the command line"),
    (": --input name=1x128:int64", " on the command line"),
    ("can count it: --values random", "can count it: tick the box for them"),
    ("; --input-size says otherwise", ""),
    (", in their order, or leave --names out", ", in their order"),
    (" (--input-size)", ""),
    (", so it needs `--accept`", ", so it is asked about"),
    ("Needs `--accept`", "It is asked about"),
    ("Filling needs `--accept`", "Filling is asked about"),
    ("Confirm by writing it into the target", "Confirm it with the target on the Repair page"),
    ("Write it into the target to confirm it", "Choose it with the target on the Repair page to confirm it"),
)


def in_page_words(text: str) -> str:
    """The same sentence without options of the command line."""
    if "--" not in text and "into the target" not in text:
        return text
    for phrase, words in OPTION_WORDS:
        text = text.replace(phrase, words)
    return text

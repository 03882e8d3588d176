-- The run file, version 4: the outcomes before number `upto` of `tallied`, counted, so that a look at a run of
-- millions of trials reads thousands of rows. The writer moves `upto` on, in the transaction of the counts.

CREATE TABLE tallies (
    model     INTEGER NOT NULL REFERENCES models (id),
    question  INTEGER NOT NULL REFERENCES questions (id),
    category  INTEGER NOT NULL,      -- -1 for a missing trial
    missing   TEXT NOT NULL,         -- packed; empty where there is a category
    stored    INTEGER NOT NULL,      -- how many outcomes these are
    truncated INTEGER NOT NULL,      -- those of them that were cut off at the token limit
    PRIMARY KEY (model, question, category, missing)
) WITHOUT ROWID;

CREATE TABLE tallied (
    id   INTEGER PRIMARY KEY CHECK (id = 0),
    upto INTEGER NOT NULL
);

INSERT INTO tallied (id, upto) VALUES (0, 0);

-- The run file, version 2: what stored answers are under other scorers and rubrics. The scoring that the run was
-- decided by stays in `outcomes` and `answers`; each row of `scorings` is one look at the same answers afterwards.

CREATE TABLE scorings (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL,              -- packed
    at   REAL NOT NULL,              -- Unix time, seconds
    body TEXT NOT NULL               -- packed JSON: scorer, rubric, thresholds, weights of each task; standings
);

CREATE TABLE rescored (
    scoring   INTEGER NOT NULL REFERENCES scorings (id),
    outcome   INTEGER NOT NULL REFERENCES outcomes (id),
    category  INTEGER,               -- NULL where the answer cannot be scored so
    extracted TEXT,                  -- packed; NULL for none
    reason    TEXT NOT NULL,         -- packed
    PRIMARY KEY (scoring, outcome)
) WITHOUT ROWID;

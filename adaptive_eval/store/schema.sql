-- The run file. Whoever changes it raises `user_version`: a file of another version is refused.
--
-- Append-only but for `meta` (upserts), `tallies` and `snapshots` (thinned). Every id is given by the one writer and
-- counts from 0 without gaps, so that id order is commit order and repeating a commit changes nothing.
-- Columns marked `packed` hold TEXT, or a BLOB: UTF-8 in a Zstandard frame (codec.py).

PRAGMA application_id = 1095063122;  -- 'AEVR'
PRAGMA user_version = 17;

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,          -- packed
    value TEXT NOT NULL              -- packed
) WITHOUT ROWID;

-- Names, interned: a trial refers to them by a small integer.

CREATE TABLE models (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE        -- packed
);

CREATE TABLE tasks (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE        -- packed
);

CREATE TABLE questions (
    id   INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks (id),
    name TEXT NOT NULL,              -- packed; the question's id within its task
    UNIQUE (task, name)
);

CREATE TABLE endpoints (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE        -- packed; base URL without credentials
);

CREATE TABLE signal_sets (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE        -- packed; JSON list of signal names, the order of answers.signals
);

-- Request bodies without their seed: all repeats of a question share one.
CREATE TABLE bodies (
    id     INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,     -- BLAKE2b-128 of the JSON text
    body   TEXT NOT NULL             -- packed JSON
);

-- The log.

CREATE TABLE launches (
    id       INTEGER PRIMARY KEY,
    model    INTEGER NOT NULL REFERENCES models (id),
    step     INTEGER NOT NULL,
    question INTEGER NOT NULL REFERENCES questions (id),
    repeat   INTEGER NOT NULL,
    seed     INTEGER NOT NULL,
    at       REAL NOT NULL           -- Unix time, seconds
);

CREATE TABLE attempts (
    id         INTEGER PRIMARY KEY,
    model      INTEGER NOT NULL REFERENCES models (id),
    step       INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,     -- from 1
    endpoint   INTEGER NOT NULL REFERENCES endpoints (id),
    started_at REAL NOT NULL,
    latency    REAL NOT NULL,        -- seconds
    status     INTEGER,
    error      TEXT,                 -- packed; NULL for success
    message    TEXT NOT NULL         -- packed
);

CREATE INDEX attempts_failed ON attempts (model, error) WHERE error IS NOT NULL;

-- One narrow row a trial: all that replay and reports of 500,000 trials have to read.
CREATE TABLE outcomes (
    id                INTEGER PRIMARY KEY,
    model             INTEGER NOT NULL REFERENCES models (id),
    step              INTEGER NOT NULL,
    question          INTEGER NOT NULL REFERENCES questions (id),
    repeat            INTEGER NOT NULL,
    seed              INTEGER NOT NULL,
    category          INTEGER,       -- NULL for a missing trial
    prompt_tokens     INTEGER NOT NULL,  -- tokens charged to the budget
    completion_tokens INTEGER NOT NULL,
    cached_tokens     INTEGER NOT NULL,
    latency           REAL,          -- seconds; NULL for a missing trial
    finished_at       REAL NOT NULL, -- Unix time
    finish_reason     TEXT,          -- packed; NULL for a missing trial
    missing           TEXT,          -- packed; why there is no answer
    after_stop        INTEGER NOT NULL,
    answer            INTEGER,       -- BLAKE2b-32 of the text, by which a replay tells answers apart; NULL for a missing trial
    response          INTEGER,       -- BLAKE2b-32 of the response's id; NULL without one
    discarded         TEXT,          -- packed; causes for which earlier draws were given up, by commas; NULL for none
    UNIQUE (model, step)
);

CREATE TABLE answers (
    outcome      INTEGER PRIMARY KEY REFERENCES outcomes (id),
    body         INTEGER NOT NULL REFERENCES bodies (id),
    sent_seed    INTEGER,            -- the `seed` of the body as sent; NULL where it had none
    checksum     BLOB NOT NULL,      -- BLAKE2b-64 of the trial as it was given to the writer, names and request included
    text         TEXT,               -- packed; NULL for a missing trial, as are the following
    logprobs     TEXT,               -- packed JSON
    details      TEXT,               -- packed JSON by field: extracted, reason; model, response_id, reasoning, reasoning_tokens,
                                     -- tool_calls [{id, name, arguments}, …], calls of a solver, where there are any; usage
                                     -- [prompt, completion, cached], where it is not what was charged
    signal_set   INTEGER REFERENCES signal_sets (id),
    signals      TEXT                -- packed JSON list of values
);

CREATE TABLE decisions (
    id     INTEGER PRIMARY KEY,
    at     REAL NOT NULL,
    trials INTEGER NOT NULL,
    body   TEXT NOT NULL             -- packed JSON
);

CREATE TABLE snapshots (
    id      INTEGER PRIMARY KEY,
    at      REAL NOT NULL,
    elapsed REAL NOT NULL,
    trials  INTEGER NOT NULL,
    body    TEXT NOT NULL            -- packed JSON: results and endpoints
);

-- The outcomes before number `upto` of `tallied`, counted, so that a look at a run of millions of trials reads thousands
-- of rows. The writer moves `upto` on, in the transaction of the counts.

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

-- What stored answers are under other scorers and rubrics. The scoring that the run was decided by stays in `outcomes` and
-- `answers`; each row of `scorings` is one look at the same answers afterwards.

CREATE TABLE scorings (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL,              -- packed
    at   REAL NOT NULL,              -- Unix time, seconds
    body TEXT NOT NULL,              -- packed JSON: scorer, rubric, thresholds, weights of each task; results
    checksum BLOB NOT NULL           -- BLAKE2b-128 of name, time and body, and of its rows of `rescored`
);

CREATE TABLE rescored (
    scoring   INTEGER NOT NULL REFERENCES scorings (id),
    outcome   INTEGER NOT NULL REFERENCES outcomes (id),
    category  INTEGER,               -- NULL where the answer cannot be scored so
    extracted TEXT,                  -- packed; NULL for none
    reason    TEXT NOT NULL,         -- packed
    PRIMARY KEY (scoring, outcome)
) WITHOUT ROWID;

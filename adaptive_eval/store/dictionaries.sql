-- The run file, version 3: packed values are zlib-compressed, as before, or Zstandard frames (zstd.py). A frame
-- with dictionary id 32768 + n was compressed with the dictionary whose id here is n.

CREATE TABLE dictionaries (
    id   INTEGER PRIMARY KEY,
    body BLOB NOT NULL               -- the dictionary, a Zstandard frame itself
);

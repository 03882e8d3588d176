-- The run file, version 5: a checksum of each trial as it was given to the writer, names and request included
-- (integrity.py). NULL for trials that an earlier version wrote.

ALTER TABLE answers ADD COLUMN checksum BLOB;  -- BLAKE2b-64

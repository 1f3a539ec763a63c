-- No hash of a report is kept any more, and payloads are sealed under a key for each wave. The keys are not in the store.
-- When reports are deleted, n is 0, the payloads are empty and the key is destroyed; the ids stay, so that nothing comes twice.
ALTER TABLE waves ADD COLUMN key_name TEXT;
DROP INDEX chunks_by_question;
ALTER TABLE chunks RENAME TO old_chunks;
CREATE TABLE chunks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  question INTEGER NOT NULL REFERENCES questions (key),
  n INTEGER NOT NULL,
  ids BLOB NOT NULL,
  payloads BLOB NOT NULL
);
CREATE INDEX chunks_by_question ON chunks (question, seq, n);

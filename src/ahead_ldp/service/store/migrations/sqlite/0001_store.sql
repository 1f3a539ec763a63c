-- The store, version 1. Times are whole seconds since 1970; digests are lower-case hexadecimal.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('version', 0), ('epoch', 1), ('probe', 0);

CREATE TABLE campaigns (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  digest TEXT NOT NULL UNIQUE,
  record BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('draft', 'open', 'review', 'finished', 'void')),
  created_at INTEGER NOT NULL,
  ended_at INTEGER
);

CREATE TABLE waves (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign INTEGER NOT NULL REFERENCES campaigns (key),
  number INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'held', 'closed', 'void')),
  note TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  closes_at INTEGER,
  closed_at INTEGER,
  extensions INTEGER NOT NULL,
  UNIQUE (campaign, number)
);

CREATE TABLE questions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  wave INTEGER NOT NULL REFERENCES waves (key),
  name TEXT NOT NULL, -- the group
  digest TEXT NOT NULL,
  record BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'counted', 'void')),
  n INTEGER,
  tally BLOB,
  reports_digest TEXT,
  UNIQUE (wave, name)
);

-- Reports of one question that came in with one commit: ids (16 bytes each), hashes (32) and payloads back to back.
-- When reports are deleted, n is 0 and the payloads are empty; ids and hashes stay, so that nothing comes twice.
CREATE TABLE chunks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  question INTEGER NOT NULL REFERENCES questions (key),
  n INTEGER NOT NULL,
  ids BLOB NOT NULL,
  hashes BLOB NOT NULL,
  payloads BLOB NOT NULL
);
CREATE INDEX chunks_by_question ON chunks (question, seq, n);

-- Ids that left their chunk, or were withdrawn before they came.
CREATE TABLE withdrawn (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign INTEGER NOT NULL REFERENCES campaigns (key),
  id BLOB NOT NULL
);

CREATE TABLE counters (
  campaign TEXT NOT NULL,
  wave INTEGER NOT NULL,
  reason TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (campaign, wave, reason)
) WITHOUT ROWID;

CREATE TABLE jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  args BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'done', 'failed')),
  attempts INTEGER NOT NULL,
  lease TEXT,
  lease_until INTEGER,
  result BLOB,
  created_at INTEGER NOT NULL,
  not_before INTEGER NOT NULL
);

CREATE TABLE role_tokens (
  digest BLOB PRIMARY KEY,
  role TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
);

CREATE TABLE events (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  body BLOB NOT NULL,
  digest TEXT NOT NULL
);

-- Visits to the dashboard, by the SHA-256 of the id in the browser's cookie. A family is one visit under all its ids.
CREATE TABLE sessions (
  digest BLOB PRIMARY KEY,
  family BLOB NOT NULL,
  token BLOB NOT NULL, -- the digest of the role token that it was opened with
  started_at INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_family ON sessions (family);

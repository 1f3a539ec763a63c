-- Visits to the dashboard, by the SHA-256 of the id in the browser's cookie. A family is one visit under all its ids.
CREATE TABLE sessions (
  digest BYTEA PRIMARY KEY,
  family BYTEA NOT NULL,
  token BYTEA NOT NULL, -- the digest of the role token that it was opened with
  started_at BIGINT NOT NULL,
  made_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_family ON sessions (family);

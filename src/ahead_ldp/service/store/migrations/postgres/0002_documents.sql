-- Derived documents, such as the screens of a wave: kept beside the tallies they belong to.
CREATE TABLE documents (
  campaign TEXT NOT NULL,
  wave BIGINT NOT NULL,
  kind TEXT NOT NULL,
  body BYTEA NOT NULL,
  PRIMARY KEY (campaign, wave, kind)
);

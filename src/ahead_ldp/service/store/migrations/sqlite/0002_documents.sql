-- Derived documents, such as the screens of a wave: kept beside the tallies they belong to.
CREATE TABLE documents (
  campaign TEXT NOT NULL,
  wave INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (campaign, wave, kind)
) WITHOUT ROWID;

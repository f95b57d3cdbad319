-- The dedup table of samekey for SQLite: one row per key. The core is (scope, id_key), request_hash, status, response_code
-- and response_body; every other column says why it is there. Every statement may be run again. Times are ms since 1970.

CREATE TABLE IF NOT EXISTS idempotency_keys (
  scope             TEXT    NOT NULL, -- whose key, and at which endpoint; length-prefixed parts, so that no two scopes collide
  id_key            TEXT    NOT NULL,
  request_hash      TEXT,             -- with its algorithm, so that an upgrade makes no false 422; NULL: the next request sets it
  status            TEXT    NOT NULL CHECK (status IN ('in_progress', 'completed', 'retryable', 'indeterminate')),
  response_code     INTEGER,
  response_headers  TEXT,             -- JSON [[name, value], …]: order and repeats survive
  response_body     BLOB,             -- the exact bytes
  body_omitted      TEXT,             -- why a completed row has no body to replay
  owner             TEXT    NOT NULL, -- the run that may settle the row …
  fence             INTEGER NOT NULL, -- … and the number that makes a stale one harmless; it only grows, so rows are never deleted on release
  attempts          INTEGER NOT NULL,
  lease_until       INTEGER NOT NULL, -- when a run that gives no sign counts as dead
  effect_started    INTEGER NOT NULL, -- an effect elsewhere may have happened: a dead run leaves doubt, not a free key
  operation_ref     TEXT    NOT NULL, -- random; shown to clients, so that support finds the row without the key
  reason            TEXT,             -- why it is indeterminate
  created_at        INTEGER NOT NULL,
  settled_at        INTEGER,
  result_expires_at INTEGER,          -- the answer may be dropped earlier than the key is forgotten
  expires_at        INTEGER NOT NULL,
  revision          INTEGER NOT NULL, -- grows with every write: a decision is written only over the row it was made on
  PRIMARY KEY (scope, id_key)
) STRICT;

-- For the purge, so that its cost follows what is due and not what is stored.
CREATE INDEX IF NOT EXISTS idempotency_keys_expires_at ON idempotency_keys (expires_at);
CREATE INDEX IF NOT EXISTS idempotency_keys_result_expires_at ON idempotency_keys (result_expires_at)
  WHERE status = 'completed' AND body_omitted IS NULL AND result_expires_at < expires_at;
CREATE INDEX IF NOT EXISTS idempotency_keys_indeterminate ON idempotency_keys (settled_at) WHERE status = 'indeterminate';

-- As in the other databases; a lease needs no note outside of its row, so it stays empty here.
CREATE TABLE IF NOT EXISTS idempotency_keys_effects (
  scope      TEXT    NOT NULL,
  id_key     TEXT    NOT NULL,
  fence      INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  PRIMARY KEY (scope, id_key)
) STRICT;

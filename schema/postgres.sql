-- The dedup table of samekey: one row per key. The core is (scope, id_key), request_hash, status, response_code and
-- response_body; every other column says why it is there. Every statement may be run again.

CREATE TABLE IF NOT EXISTS idempotency_keys (
  scope             text        NOT NULL, -- whose key, and at which endpoint; length-prefixed parts, so that no two scopes collide
  id_key            text        NOT NULL,
  request_hash      text,                 -- with its algorithm, so that an upgrade makes no false 422; NULL: the next request sets it
  status            text        NOT NULL CHECK (status IN ('in_progress', 'completed', 'retryable', 'indeterminate')),
  response_code     integer,
  response_headers  text,                 -- JSON [[name, value], …]: order and repeats survive
  response_body     bytea,                -- the exact bytes: jsonb reorders, rounds, and refuses \u0000
  body_omitted      text,                 -- why a completed row has no body to replay
  owner             text        NOT NULL, -- the run that may settle the row …
  fence             bigint      NOT NULL, -- … and the number that makes a stale one harmless; it only grows, so rows are never deleted on release
  attempts          integer     NOT NULL,
  lease_until       timestamptz NOT NULL, -- when a run that gives no sign counts as dead; the epoch: a transaction's lock holds the key
  effect_started    boolean     NOT NULL, -- an effect elsewhere may have happened: a dead run leaves doubt, not a free key
  operation_ref     text        NOT NULL, -- random; shown to clients, so that support finds the row without the key
  reason            text,                 -- why it is indeterminate
  created_at        timestamptz NOT NULL,
  settled_at        timestamptz,
  result_expires_at timestamptz,          -- the answer may be dropped earlier than the key is forgotten
  expires_at        timestamptz NOT NULL,
  revision          bigint      NOT NULL, -- grows with every write: a decision is written only over the row it was made on
  PRIMARY KEY (scope, id_key)
);

-- For the purge, so that its cost follows what is due and not what is stored.
CREATE INDEX IF NOT EXISTS idempotency_keys_expires_at ON idempotency_keys (expires_at);
CREATE INDEX IF NOT EXISTS idempotency_keys_result_expires_at ON idempotency_keys (result_expires_at)
  WHERE status = 'completed' AND body_omitted IS NULL AND result_expires_at < expires_at;
CREATE INDEX IF NOT EXISTS idempotency_keys_indeterminate ON idempotency_keys (settled_at) WHERE status = 'indeterminate';

-- Effects elsewhere that were announced from within a transaction which may be rolled back: a table of its own, because
-- that transaction has the key's row locked. It counts while its fence is above the row's.
CREATE TABLE IF NOT EXISTS idempotency_keys_effects (
  scope      text        NOT NULL,
  id_key     text        NOT NULL,
  fence      bigint      NOT NULL,
  started_at timestamptz NOT NULL,
  PRIMARY KEY (scope, id_key)
);

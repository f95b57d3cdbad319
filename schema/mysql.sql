-- The dedup table of samekey for MySQL 8.0 and MariaDB 10.6 or newer: one row per key. The core is (scope, id_key),
-- request_hash, status, response_code and response_body; every other column says why it is there. Every statement may be
-- run again. Times are UTC, whatever the time zone of a session.

CREATE TABLE IF NOT EXISTS idempotency_keys (
  scope             varbinary(2048) NOT NULL, -- whose key, and at which endpoint; bytes, so that no collation makes two keys one
  id_key            varbinary(1000) NOT NULL,
  request_hash      varchar(1024),            -- with its algorithm, so that an upgrade makes no false 422; NULL: the next request sets it
  status            varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (status IN ('in_progress', 'completed', 'retryable', 'indeterminate')),
  response_code     smallint unsigned,
  response_headers  mediumtext,               -- JSON [[name, value], …]: order and repeats survive
  response_body     longblob,                 -- the exact bytes; a longer one than max_allowed_packet cannot be sent
  body_omitted      varchar(16) CHARACTER SET ascii COLLATE ascii_bin, -- why a completed row has no body to replay
  owner             varbinary(255)  NOT NULL, -- the run that may settle the row …
  fence             bigint          NOT NULL, -- … and the number that makes a stale one harmless; it only grows, so rows are never deleted on release
  attempts          int             NOT NULL,
  lease_until       datetime(3)     NOT NULL, -- when a run that gives no sign counts as dead; 1970: a transaction's lock holds the key
  effect_started    boolean         NOT NULL, -- an effect elsewhere may have happened: a dead run leaves doubt, not a free key
  operation_ref     varchar(255)    NOT NULL, -- random; shown to clients, so that support finds the row without the key
  reason            text,                     -- why it is indeterminate
  created_at        datetime(3)     NOT NULL,
  settled_at        datetime(3),
  result_expires_at datetime(3),              -- the answer may be dropped earlier than the key is forgotten
  expires_at        datetime(3)     NOT NULL,
  revision          bigint          NOT NULL, -- grows with every write: a decision is written only over the row it was made on
  PRIMARY KEY (scope, id_key),
  -- For the purge, so that its cost follows what is due and not what is stored.
  INDEX due (status, expires_at),
  INDEX bodies_due (body_omitted, result_expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Effects elsewhere that were announced from within a transaction which may be rolled back: a table of its own, because
-- that transaction has the key's row locked. It counts while its fence is above the row's.
CREATE TABLE IF NOT EXISTS idempotency_keys_effects (
  scope      varbinary(2048) NOT NULL,
  id_key     varbinary(1000) NOT NULL,
  fence      bigint          NOT NULL,
  started_at datetime(3)     NOT NULL,
  PRIMARY KEY (scope, id_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

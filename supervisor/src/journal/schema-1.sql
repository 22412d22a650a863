-- Times are milliseconds since 1970. The store has a hard size limit; every table is bounded.
CREATE TABLE evaluations (
    id TEXT NOT NULL PRIMARY KEY,
    uid INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'ended', 'unknown')),
    started INTEGER NOT NULL,
    ended INTEGER,
    outcome TEXT,
    -- What confined its worker, as JSON: for the answer that a crash leaves.
    sandbox TEXT NOT NULL,
    -- The whole answer, as JSON; without one until it is over.
    answer TEXT,
    -- What it counts for against its principal.
    bytes INTEGER NOT NULL,
    -- Not deleted for want of room before this; deleted for age after `expires`.
    promised INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX evaluations_of ON evaluations (uid, started);
CREATE INDEX evaluations_expiring ON evaluations (expires);
CREATE INDEX evaluations_running ON evaluations (id) WHERE state = 'running';

CREATE TABLE calls (
    evaluation TEXT NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    call INTEGER NOT NULL,
    function TEXT NOT NULL,
    effect TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    input_sha256 TEXT NOT NULL,
    input_bytes INTEGER NOT NULL,
    -- `started`: from here on nobody can say that it did not run.
    state TEXT NOT NULL CHECK (state IN ('started', 'completed', 'failed', 'unknown', 'refused')),
    code TEXT,
    started INTEGER NOT NULL,
    ended INTEGER,
    output_sha256 TEXT,
    output_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (evaluation, call)
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_started ON calls (evaluation) WHERE state = 'started';

CREATE TABLE idempotency (
    uid INTEGER NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    evaluation TEXT NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
    PRIMARY KEY (uid, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_of ON idempotency (evaluation);

-- What each principal has here.
CREATE TABLE used (
    uid INTEGER NOT NULL PRIMARY KEY,
    evaluations INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
CREATE TRIGGER used_more AFTER INSERT ON evaluations BEGIN
    INSERT INTO used VALUES (new.uid, 1, new.bytes)
        ON CONFLICT (uid) DO UPDATE SET evaluations = evaluations + 1, bytes = bytes + new.bytes;
END;
CREATE TRIGGER used_otherwise AFTER UPDATE OF bytes ON evaluations BEGIN
    UPDATE used SET bytes = bytes + new.bytes - old.bytes WHERE uid = new.uid;
END;
CREATE TRIGGER used_less AFTER DELETE ON evaluations BEGIN
    UPDATE used SET evaluations = evaluations - 1, bytes = bytes - old.bytes WHERE uid = old.uid;
END;

-- What budgets used, slot by slot. Amounts are exact decimal numbers, as text.
CREATE TABLE counters (
    uid INTEGER NOT NULL,
    key TEXT NOT NULL,
    begins INTEGER NOT NULL,
    used TEXT NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (uid, key, begins)
) STRICT, WITHOUT ROWID;
CREATE INDEX counters_expiring ON counters (expires);

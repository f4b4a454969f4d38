CREATE TABLE event (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
        charge INTEGER CHECK (typeof(charge) IN ('integer', 'null')),
        body TEXT NOT NULL CHECK (typeof(body) = 'text'),
        previous TEXT NOT NULL CHECK (typeof(previous) = 'text'),
        digest TEXT NOT NULL CHECK (typeof(digest) = 'text')
    );
CREATE UNIQUE INDEX event_of_charge ON event (kind, charge) WHERE charge IS NOT NULL;
CREATE TABLE release (
        charge INTEGER PRIMARY KEY,
        request TEXT NOT NULL CHECK (typeof(request) = 'text'),
        dataset_version INTEGER NOT NULL CHECK (typeof(dataset_version) = 'integer'),
        payload BLOB NOT NULL CHECK (typeof(payload) = 'blob')
    );
CREATE INDEX release_of_request ON release (request, dataset_version, charge);
CREATE TABLE secret (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        key BLOB NOT NULL CHECK (typeof(key) = 'blob')
    );
CREATE TRIGGER event_appended BEFORE INSERT ON event
        WHEN NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM event)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER release_appended BEFORE INSERT ON release
        WHEN EXISTS (SELECT 1 FROM release WHERE charge = NEW.charge)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER secret_appended BEFORE INSERT ON secret
        WHEN EXISTS (SELECT 1 FROM secret)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TABLE claim (
        run INTEGER NOT NULL CHECK (typeof(run) = 'integer'),
        first INTEGER NOT NULL CHECK (typeof(first) = 'integer'),
        last INTEGER NOT NULL CHECK (typeof(last) = 'integer' AND last >= first),
        digest TEXT NOT NULL CHECK (typeof(digest) = 'text' AND (digest = '' OR first = last)),
        PRIMARY KEY (run, first)
    );
CREATE TRIGGER claim_appended BEFORE INSERT ON claim
        WHEN NEW.first <> (SELECT coalesce(max(last), -1) + 1 FROM claim WHERE run = NEW.run)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER claim_grown BEFORE UPDATE ON claim
        WHEN NEW.run <> OLD.run OR NEW.first <> OLD.first OR NEW.last < OLD.last OR NEW.digest <> OLD.digest
            OR EXISTS (SELECT 1 FROM claim WHERE run = OLD.run AND first > OLD.first)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER claim_delete_refused BEFORE delete ON claim
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER event_update_refused BEFORE update ON event
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER event_delete_refused BEFORE delete ON event
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER release_update_refused BEFORE update ON release
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER release_delete_refused BEFORE delete ON release
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER secret_update_refused BEFORE update ON secret
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER secret_delete_refused BEFORE delete ON secret
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;

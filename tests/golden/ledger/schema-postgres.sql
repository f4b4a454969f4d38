CREATE TABLE head (id integer PRIMARY KEY CHECK (id = 1), application text NOT NULL, version integer NOT NULL,
        position bigint NOT NULL);
CREATE TABLE event (position bigint PRIMARY KEY, kind text NOT NULL, charge bigint, body text NOT NULL,
        previous text NOT NULL, digest text NOT NULL);
CREATE TABLE release (charge bigint PRIMARY KEY, request text NOT NULL, dataset_version bigint NOT NULL,
        payload bytea NOT NULL);
CREATE TABLE secret (id integer PRIMARY KEY CHECK (id = 1), key bytea NOT NULL);
CREATE TABLE claim (run bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL CHECK (last >= first),
        digest text NOT NULL CHECK (digest = '' OR first = last), PRIMARY KEY (run, first));
CREATE UNIQUE INDEX event_of_charge ON event (kind, charge) WHERE charge IS NOT NULL;
CREATE INDEX release_of_request ON release (request, dataset_version, charge);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = "sfumato", pg_temp AS $body$BEGIN RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END$body$;
CREATE FUNCTION append_event() RETURNS trigger LANGUAGE plpgsql SET search_path = "sfumato", pg_temp AS $body$BEGIN
    IF NEW.kind = 'account' AND NOT has_function_privilege(current_user, 'may_grant()', 'EXECUTE') THEN RAISE EXCEPTION 'only a curator grants' USING ERRCODE = 'SF001'; END IF;
    UPDATE head SET position = NEW.position WHERE id = 1 AND position = NEW.position - 1; IF NOT FOUND THEN RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW;
END$body$;
CREATE FUNCTION advance_head() RETURNS trigger LANGUAGE plpgsql SET search_path = "sfumato", pg_temp AS $body$BEGIN
    IF NEW.id <> OLD.id OR NEW.application <> OLD.application OR NEW.version < OLD.version
        OR NEW.position NOT IN (OLD.position, OLD.position + 1) THEN RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END IF;
    RETURN NEW;
END$body$;
CREATE FUNCTION append_claim() RETURNS trigger LANGUAGE plpgsql SET search_path = "sfumato", pg_temp AS $body$BEGIN
    IF NEW.first <> (SELECT coalesce(max(last), -1) + 1 FROM claim WHERE run = NEW.run) THEN RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END IF;
    RETURN NEW;
END$body$;
CREATE FUNCTION grow_claim() RETURNS trigger LANGUAGE plpgsql SET search_path = "sfumato", pg_temp AS $body$BEGIN
    IF NEW.run <> OLD.run OR NEW.first <> OLD.first OR NEW.last < OLD.last OR NEW.digest <> OLD.digest
        OR NOT NOT EXISTS (SELECT 1 FROM claim WHERE run = OLD.run AND first > OLD.first) THEN RAISE EXCEPTION 'a ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END IF;
    RETURN NEW;
END$body$;
CREATE FUNCTION may_grant() RETURNS boolean LANGUAGE sql AS $body$SELECT TRUE$body$;
REVOKE EXECUTE ON FUNCTION may_grant() FROM PUBLIC;
CREATE TRIGGER event_appended BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION append_event();
CREATE TRIGGER head_advanced BEFORE UPDATE ON head FOR EACH ROW EXECUTE FUNCTION advance_head();
CREATE TRIGGER head_refused BEFORE DELETE OR TRUNCATE ON head EXECUTE FUNCTION refuse_change();
CREATE TRIGGER claim_appended BEFORE INSERT ON claim FOR EACH ROW EXECUTE FUNCTION append_claim();
CREATE TRIGGER claim_grown BEFORE UPDATE ON claim FOR EACH ROW EXECUTE FUNCTION grow_claim();
CREATE TRIGGER claim_refused BEFORE DELETE OR TRUNCATE ON claim EXECUTE FUNCTION refuse_change();
CREATE TRIGGER event_refused BEFORE UPDATE OR DELETE OR TRUNCATE ON event EXECUTE FUNCTION refuse_change();
CREATE TRIGGER release_refused BEFORE UPDATE OR DELETE OR TRUNCATE ON release EXECUTE FUNCTION refuse_change();
CREATE TRIGGER secret_refused BEFORE UPDATE OR DELETE OR TRUNCATE ON secret EXECUTE FUNCTION refuse_change();

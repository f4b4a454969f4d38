BEGIN TRANSACTION;
CREATE TABLE event (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
        charge INTEGER CHECK (typeof(charge) IN ('integer', 'null')),
        body TEXT NOT NULL CHECK (typeof(body) = 'text'),
        previous TEXT NOT NULL CHECK (typeof(previous) = 'text'),
        digest TEXT NOT NULL CHECK (typeof(digest) = 'text')
    );
INSERT INTO "event" VALUES(1,'opened',NULL,'{"budget":{"delta":1e-07,"epsilon":2.0,"filters":[{"delta":5e-08,"kind":"basic","limit":2.0},{"delta":2.5e-08,"kind":"zcdp","limit":0.06766756445745159}],"kind":"approximate","mu":null,"rho":null},"charges":0,"dataset":"65bb1a1d4a454cee1637720bb284614f","fingerprint":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","key":"7422f25a23dca7f6e3a3d553dd298932752f1df87f32d1d0b024c3c947f1ed4f","ledger":"b6ac3221087aae4b36c157e56a15f524","neighboring":"add-remove","privacy_unit":"id","schema":"people(id BIGINT)","simulated":false,"time":"2026-11-21T14:57:06.892570+00:00","totals":[[0.0,0.0],[0.0,0.0]],"versions":1}','0000000000000000000000000000000000000000000000000000000000000000','7b40b3839502136aa5e9c897d9c72820758f2fdd747a2c46fef23309063f5324');
INSERT INTO "event" VALUES(2,'charge',1,'{"charges":1,"costs":[[0.24999998000000084,1e-08],[0.028800783071404993,0.0]],"delta":1e-08,"description":"how many?","epsilon":0.24999998000000084,"loss":"{\"loss\":{\"neighboring\":\"add-remove\",\"node\":\"Laplace\",\"noise_multiplier\":4.0},\"version\":1}","request":"0af752bc228dba0b0b0df9e0093d034571c88476f724d098d9755fd2bb27e662","simulated":false,"time":"2026-11-21T14:57:06.905905+00:00","totals":[[0.24999998000000084,1e-08],[0.028800783071404993,0.0]],"version":1,"versions":1}','7b40b3839502136aa5e9c897d9c72820758f2fdd747a2c46fef23309063f5324','d072292b75837677516a3ec64275d0b0abdb1510883faa6879e0dad1b9d6e3c4');
INSERT INTO "event" VALUES(3,'commit',1,'{"charges":1,"payload":"4d2f8927bb139fd9c8664240a4b85fdbace82a295c9c1acc7799696acff485bb","request":"0af752bc228dba0b0b0df9e0093d034571c88476f724d098d9755fd2bb27e662","time":"2026-11-21T14:57:06.925231+00:00","totals":[[0.24999998000000084,1e-08],[0.028800783071404993,0.0]],"version":1,"versions":1}','d072292b75837677516a3ec64275d0b0abdb1510883faa6879e0dad1b9d6e3c4','817a9d00035f9a6b111857e6345abe3fa34649405e0f2df527deb9559ab3ed3f');
INSERT INTO "event" VALUES(4,'charge',2,'{"charges":2,"costs":[[0.2601967737180417,1e-09],[0.001250000000000001,0.0]],"delta":1e-09,"description":"never answered","epsilon":0.2601967737180417,"loss":"{\"loss\":{\"neighboring\":\"add-remove\",\"node\":\"Gaussian\",\"noise_multiplier\":20.0},\"version\":1}","request":"","simulated":false,"time":"2026-11-21T14:57:06.933416+00:00","totals":[[0.5101967537180425,1.1000000000000001e-08],[0.030050783071404994,0.0]],"version":1,"versions":1}','817a9d00035f9a6b111857e6345abe3fa34649405e0f2df527deb9559ab3ed3f','8a407f6d0e565777e0f63951eeb27121b24cb6ba05d267a2c044d33e524b5fa1');
INSERT INTO "event" VALUES(5,'version',NULL,'{"charges":2,"fingerprint":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","schema":"people(id BIGINT)","time":"2026-11-21T14:57:06.958853+00:00","totals":[[0.5101967537180425,1.1000000000000001e-08],[0.030050783071404994,0.0]],"versions":2}','8a407f6d0e565777e0f63951eeb27121b24cb6ba05d267a2c044d33e524b5fa1','563a2ba35bb67b260f00f861d5cd6f6a9deb2ddc0e7a16c82df8fc318929121d');
INSERT INTO "event" VALUES(6,'charge',3,'{"charges":3,"costs":[[0.125,1e-09],[0.007802343343439072,1e-09]],"delta":1e-09,"description":"","epsilon":0.125,"loss":"{\"loss\":{\"delta\":1e-09,\"epsilon\":0.125,\"neighboring\":\"add-remove\",\"node\":\"ApproximateDP\"},\"version\":1}","request":"0af752bc228dba0b0b0df9e0093d034571c88476f724d098d9755fd2bb27e662","simulated":false,"time":"2026-11-21T14:57:06.970201+00:00","totals":[[0.6351967537180425,1.2000000000000002e-08],[0.03785312641484407,1e-09]],"version":2,"versions":2}','563a2ba35bb67b260f00f861d5cd6f6a9deb2ddc0e7a16c82df8fc318929121d','d3f10e39f3f946a4fd1af0aaf48fe08095cb2e170f00e567cc34bc6a0200935b');
CREATE TABLE release (
        charge INTEGER PRIMARY KEY,
        request TEXT NOT NULL CHECK (typeof(request) = 'text'),
        version INTEGER NOT NULL CHECK (typeof(version) = 'integer'),
        payload BLOB NOT NULL CHECK (typeof(payload) = 'blob')
    );
INSERT INTO "release" VALUES(1,'0af752bc228dba0b0b0df9e0093d034571c88476f724d098d9755fd2bb27e662',1,X'0074686520616E73776572');
CREATE TABLE secret (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        key BLOB NOT NULL CHECK (typeof(key) = 'blob')
    );
INSERT INTO "secret" VALUES(1,X'F50857B009CB6E48952EEEE4E396C8C67BA6E735083A55EF324A8F1FE3FEA9A1');
CREATE UNIQUE INDEX event_of_charge ON event (kind, charge) WHERE charge IS NOT NULL;
CREATE INDEX release_of_request ON release (request, version, charge);
CREATE TRIGGER event_appended BEFORE INSERT ON event
        WHEN NEW.position <> (SELECT coalesce(max(position), 0) + 1 FROM event)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER release_appended BEFORE INSERT ON release
        WHEN EXISTS (SELECT 1 FROM release WHERE charge = NEW.charge)
        BEGIN SELECT raise(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER secret_appended BEFORE INSERT ON secret
        WHEN EXISTS (SELECT 1 FROM secret)
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',6);
COMMIT;
PRAGMA application_id = 1397115975;
PRAGMA user_version = 1;

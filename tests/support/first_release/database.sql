BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE api_keys (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	tenant TEXT NOT NULL,
	project TEXT,
	user_type TEXT,
	user TEXT,
	permissions TEXT NOT NULL,
	limits TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	old_sha256 TEXT,
	old_until TEXT,
	created TEXT NOT NULL,
	expires TEXT,
	revoked TEXT,
	used TEXT,
	PRIMARY KEY (id)
);
CREATE TABLE artifacts (
	id INTEGER NOT NULL,
	conversation INTEGER NOT NULL,
	turn TEXT NOT NULL,
	namespace TEXT NOT NULL CHECK (namespace IN ('files', 'attachments')),
	rel TEXT NOT NULL,
	version INTEGER NOT NULL CHECK (version >= 1),
	sha256 TEXT NOT NULL,
	size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
	mime TEXT NOT NULL,
	visibility TEXT NOT NULL CHECK (visibility IN ('external', 'internal')),
	description TEXT NOT NULL,
	tool_call_id TEXT,
	created TEXT NOT NULL,
	hosted_name TEXT,
	removed TEXT,
	PRIMARY KEY (id),
	UNIQUE (conversation, turn, namespace, rel, version),
	CHECK ((visibility = 'external') = (hosted_name IS NOT NULL)),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
INSERT INTO "artifacts" VALUES(1,1,'turn_1','attachments','notes.txt',1,'af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf',11,'text/plain','external','',NULL,'2026-11-26T08:03:00.385Z','attachments/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt',NULL);
INSERT INTO "artifacts" VALUES(2,1,'turn_1','files','table.csv',1,'492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470',8,'text/csv','external','a table','call_1','2026-11-26T08:03:00.487Z','files/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv',NULL);
CREATE TABLE audit (
	chain INTEGER NOT NULL,
	seq INTEGER NOT NULL CHECK (seq >= 1),
	call INTEGER,
	ended TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	line TEXT NOT NULL,
	PRIMARY KEY (chain, seq),
	FOREIGN KEY(chain) REFERENCES chains (id),
	UNIQUE (call),
	FOREIGN KEY(call) REFERENCES calls (id) ON DELETE SET NULL
);
INSERT INTO "audit" VALUES(1,1,1,'2026-11-26T08:03:00.496Z','8a6a2c40bc1045d4b3e2cedecc3333d3f8bc24fe3da3352df1fc68ad7e2db906','{"seq":1,"previous":null,"format":"proofbox-audit-1","principal":{"tenant":"acme","project":"books","user_type":"registered","user":"ann"},"call":{"tool_call_id":"call_1","conversation_id":"conv-1","turn_id":"turn_1","tool_id":"exec_tools.execute_code_python","request_id":"82c8fdc4b40b45ed9ce8ffc12b15d98a","accepted":"2026-11-26T08:03:00.449Z"},"service":{"version":"1.0","boot_id":"boot-1"},"request":{"sha256":"2fbafd9f105586628b38bfef57f6626a79df6ac517b82079ce04007d0ddbf122","params_sha256":"bc5f2563cb5bb8275c8e241f6a44a4f8cd74438be3395f0a5d4f35b38d237353","code_sha256":"59e4d6d32dfe484cd7d4d60aa137a460a64012b26ed3bb7744feedba951ecfc3","code_bytes":17},"limits":{"wall_s":60,"cpus":1.0,"memory_bytes":268435456,"pids":64,"out_dir_bytes":16777216,"out_dir_inodes":1000,"file_bytes":16777216,"files":100,"depth":8,"output_bytes":1048576,"artifact_bytes":16777216},"sandbox":{"engine":"fake","runtime":"none","image_digest":"sha256:0","acquired":"cold","tier":"shared_kernel","user_namespace":false},"randomness":"fresh","inputs":[{"path":"turn_1/attachments/notes.txt","sha256":"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf","size_bytes":11,"source":"store","asked":"workspace","version":1}],"missing":[],"sources":[],"outputs":[{"path":"turn_1/files/table.csv","verdict":"produced","visibility":"external","version":1,"sha256":"492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470","size_bytes":8}],"usage":{"exit_code":0,"cpu_ms":0.0,"stdout_bytes":9,"stderr_bytes":0},"outcome":{"state":"done","code":"ok","ended":"2026-11-26T08:03:00.496Z","answer_sha256":"c294bc101e79931aa934c5b73c3565b6161d3eed29e98a0b9b1ce49512a3485d","answer_bytes":4084}}');
INSERT INTO "audit" VALUES(1,2,2,'2026-11-26T08:03:00.531Z','166ba667c5cdfceb86e97344f501fb6e86abd169f1a8aaab02b4b0894f5e49b6','{"seq":2,"previous":"8a6a2c40bc1045d4b3e2cedecc3333d3f8bc24fe3da3352df1fc68ad7e2db906","format":"proofbox-audit-1","principal":{"tenant":"acme","project":"books","user_type":"registered","user":"ann"},"call":{"tool_call_id":"call_2","conversation_id":"conv-1","turn_id":"turn_1","tool_id":"react.read","request_id":"954a81d4738e45e1abe391b5c3eebff4","accepted":"2026-11-26T08:03:00.507Z"},"service":{"version":"1.0","boot_id":"boot-1"},"request":{"sha256":"b75f4363eefb2f8f2fab69fc3432165783520d0f9ddf6ab36e316b77d97c0e5d","params_sha256":"2b9fcba34bb5b3c25441d7c637db6cc9ea1180e0a7fd74cca7f7b23c47b0ca03"},"randomness":"fresh","inputs":[],"missing":[],"sources":[],"outputs":[],"usage":{"cpu_ms":0.0,"stdout_bytes":0,"stderr_bytes":0},"outcome":{"state":"done","code":"ok","ended":"2026-11-26T08:03:00.531Z","answer_sha256":"cb7e4203800d660248b77535af3736b9fa466d1a8bd9f8529427792db5fc17b2","answer_bytes":2807}}');
CREATE TABLE audit_keys (
	public TEXT NOT NULL,
	added TEXT NOT NULL,
	PRIMARY KEY (public)
)
 WITHOUT ROWID
;
CREATE TABLE blocks (
	conversation INTEGER NOT NULL,
	position INTEGER NOT NULL CHECK (position >= 1),
	call_id TEXT,
	path TEXT NOT NULL,
	block TEXT NOT NULL,
	content BLOB,
	turn TEXT NOT NULL,
	describes TEXT,
	hides TEXT,
	PRIMARY KEY (conversation, position),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
INSERT INTO "blocks" VALUES(1,1,NULL,'fi:turn_1.user.attachments/notes.txt','{"type":"user.attachment.meta","author":"user","turn_id":"turn_1","ts":"2026-11-26T08:03:00.392Z","mime":"application/json","path":"fi:turn_1.user.attachments/notes.txt","text":"{\"artifact_path\": \"fi:turn_1.user.attachments/notes.txt\", \"physical_path\": \"turn_1/attachments/notes.txt\", \"mime\": \"text/plain\", \"kind\": \"file\", \"visibility\": \"external\", \"ts\": \"2026-11-26T08:03:00.385Z\", \"size_bytes\": 11, \"sha256\": \"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf\", \"sid\": 10001}","meta":{}}',NULL,'turn_1','fi:turn_1.user.attachments/notes.txt',NULL);
INSERT INTO "blocks" VALUES(1,2,NULL,'fi:turn_1.user.attachments/notes.txt','{"type":"user.attachment","author":"user","turn_id":"turn_1","ts":"2026-11-26T08:03:00.392Z","mime":"text/plain","path":"fi:turn_1.user.attachments/notes.txt","meta":{"digest":"{\"artifact_path\": \"fi:turn_1.user.attachments/notes.txt\", \"physical_path\": \"turn_1/attachments/notes.txt\", \"mime\": \"text/plain\", \"kind\": \"file\", \"visibility\": \"external\", \"ts\": \"2026-11-26T08:03:00.385Z\", \"size_bytes\": 11, \"sha256\": \"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf\", \"sid\": 10001}","hosted_uri":"file://proofbox/hosted/attachments/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","rn":"ef:acme:books:chatbot:attachment:ann:conv-1:turn_1:artifact:notes.txt","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","physical_path":"turn_1/attachments/notes.txt"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,3,NULL,'ar:turn_1.user.prompt','{"type":"user.prompt","author":"user","turn_id":"turn_1","ts":"2026-11-26T08:03:00.405Z","mime":"text/markdown","path":"ar:turn_1.user.prompt","text":"Make a table.","meta":{}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,4,'call_1','fi:turn_1.code.call_1','{"type":"react.tool.code","author":"react","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"text/x-python","path":"fi:turn_1.code.call_1","text":"print(''wrote it'')","call_id":"call_1","meta":{"tool_call_id":"call_1"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,5,'call_1','tc:turn_1.call_1.call','{"type":"react.tool.call","author":"react","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"application/json","path":"tc:turn_1.call_1.call","text":"{\"tool_id\": \"exec_tools.execute_code_python\", \"tool_call_id\": \"call_1\", \"params\": {\"contract\": [{\"filename\": \"table.csv\", \"description\": \"a table\"}]}, \"ts\": \"2026-11-26T08:03:00.494Z\"}","call_id":"call_1","meta":{"tool_call_id":"call_1"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,6,'call_1','tc:turn_1.call_1.result','{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"text/markdown","path":"tc:turn_1.call_1.result","text":"Runtime error: none\nProduced files:\n- turn_1/files/table.csv\nProgram log (tail):\nwrote it","call_id":"call_1","meta":{"tool_call_id":"call_1"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,7,'call_1','tc:turn_1.call_1.result','{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"application/json","path":"tc:turn_1.call_1.result","text":"{\"artifact_path\": \"fi:turn_1.files/table.csv\", \"physical_path\": \"turn_1/files/table.csv\", \"mime\": \"text/csv\", \"kind\": \"file\", \"visibility\": \"external\", \"tool_call_id\": \"call_1\", \"tool_id\": \"exec_tools.execute_code_python\", \"ts\": \"2026-11-26T08:03:00.494Z\", \"size_bytes\": 8, \"sha256\": \"492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470\", \"description\": \"a table\", \"tokens\": 8, \"sid\": 10002}","call_id":"call_1","meta":{"tool_call_id":"call_1"}}',NULL,'turn_1','fi:turn_1.files/table.csv',NULL);
INSERT INTO "blocks" VALUES(1,8,'call_1','fi:turn_1.files/table.csv','{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"text/csv","path":"fi:turn_1.files/table.csv","text":"a,b\n1,2\n","call_id":"call_1","meta":{"digest":"{\"artifact_path\": \"fi:turn_1.files/table.csv\", \"physical_path\": \"turn_1/files/table.csv\", \"mime\": \"text/csv\", \"kind\": \"file\", \"visibility\": \"external\", \"tool_call_id\": \"call_1\", \"tool_id\": \"exec_tools.execute_code_python\", \"ts\": \"2026-11-26T08:03:00.494Z\", \"size_bytes\": 8, \"sha256\": \"492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470\", \"description\": \"a table\", \"tokens\": 8, \"sid\": 10002}","hosted_uri":"file://proofbox/hosted/files/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","rn":"ef:acme:books:chatbot:file:ann:conv-1:turn_1:artifact:table.csv","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","physical_path":"turn_1/files/table.csv","tool_call_id":"call_1"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,9,'call_2','tc:turn_1.call_2.call','{"type":"react.tool.call","author":"react","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"application/json","path":"tc:turn_1.call_2.call","text":"{\"tool_id\": \"react.read\", \"tool_call_id\": \"call_2\", \"params\": {\"paths\": [\"notes.txt\"]}, \"ts\": \"2026-11-26T08:03:00.530Z\"}","call_id":"call_2","meta":{"tool_call_id":"call_2"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,10,'call_2','tc:turn_1.call_2.result','{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"application/json","path":"tc:turn_1.call_2.result","text":"{\"paths\": [\"notes.txt\"], \"missing\": [], \"missing_skills\": [], \"exists_in_visible_context\": [], \"total_tokens\": 183}","call_id":"call_2","meta":{"tool_call_id":"call_2"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(1,11,'call_2','tc:turn_1.call_2.result','{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"application/json","path":"tc:turn_1.call_2.result","text":"{\"artifact_path\": \"fi:turn_1.user.attachments/notes.txt\", \"physical_path\": \"turn_1/attachments/notes.txt\", \"mime\": \"text/plain\", \"kind\": \"file\", \"visibility\": \"external\", \"ts\": \"2026-11-26T08:03:00.385Z\", \"size_bytes\": 11, \"sha256\": \"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf\", \"sid\": 10001, \"tokens\": 3}","call_id":"call_2","meta":{"hidden":false,"tool_call_id":"call_2"}}',NULL,'turn_1','fi:turn_1.user.attachments/notes.txt',NULL);
INSERT INTO "blocks" VALUES(1,12,'call_2','fi:turn_1.user.attachments/notes.txt','{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"text/plain","path":"fi:turn_1.user.attachments/notes.txt","text":"some notes\n","call_id":"call_2","meta":{"digest":"{\"artifact_path\": \"fi:turn_1.user.attachments/notes.txt\", \"physical_path\": \"turn_1/attachments/notes.txt\", \"mime\": \"text/plain\", \"kind\": \"file\", \"visibility\": \"external\", \"ts\": \"2026-11-26T08:03:00.385Z\", \"size_bytes\": 11, \"sha256\": \"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf\", \"sid\": 10001, \"tokens\": 3}","hosted_uri":"file://proofbox/hosted/attachments/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","rn":"ef:acme:books:chatbot:attachment:ann:conv-1:turn_1:artifact:notes.txt","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","physical_path":"turn_1/attachments/notes.txt","hidden":false,"tool_call_id":"call_2"}}',NULL,'turn_1',NULL,NULL);
INSERT INTO "blocks" VALUES(2,1,NULL,'ar:turn_1.user.prompt','{"type":"user.prompt","author":"user","turn_id":"turn_1","ts":"2026-11-26T08:03:00.537Z","mime":"text/markdown","path":"ar:turn_1.user.prompt","text":"Hello.","meta":{}}',NULL,'turn_1',NULL,NULL);
CREATE TABLE calls (
	id INTEGER NOT NULL,
	conversation INTEGER NOT NULL,
	tool_call_id TEXT NOT NULL,
	payload_sha256 TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'cancelled')),
	boot_id TEXT NOT NULL,
	created TEXT NOT NULL,
	request TEXT NOT NULL,
	answer TEXT,
	partial_response TEXT,
	PRIMARY KEY (id),
	UNIQUE (conversation, tool_call_id),
	CHECK ((state = 'open') = (answer IS NULL)),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
INSERT INTO "calls" VALUES(1,1,'call_1','2fbafd9f105586628b38bfef57f6626a79df6ac517b82079ce04007d0ddbf122','done','boot-1','2026-11-26T08:03:00.449Z','{"tool_id":"exec_tools.execute_code_python","tool_call_id":"call_1","conversation_id":"conv-1","turn_id":"turn_1","params":{"contract":[{"filename":"table.csv","description":"a table"}]},"code":"print(''wrote it'')","notes":null,"sources_pool":[],"timeline":null,"assets":[],"limits":{"wall_s":null,"cpus":null,"memory_bytes":null,"pids":null,"out_dir_bytes":null,"out_dir_inodes":null,"file_bytes":null,"files":null,"depth":null,"output_bytes":null,"artifact_bytes":null}}','{"ok":true,"error":null,"ret":{"produced":["turn_1/files/table.csv"],"failed":[]},"report":"Runtime error: none\nProduced files:\n- turn_1/files/table.csv\nProgram log (tail):\nwrote it","output":{"stdout":"wrote it\n","stderr":"","combined":"wrote it\n","truncated":false},"blocks":[{"type":"react.tool.code","author":"react","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"text/x-python","path":"fi:turn_1.code.call_1","text":"print(''wrote it'')","call_id":"call_1","meta":{"tool_call_id":"call_1"}},{"type":"react.tool.call","author":"react","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"application/json","path":"tc:turn_1.call_1.call","text":"{\"tool_id\": \"exec_tools.execute_code_python\", \"tool_call_id\": \"call_1\", \"params\": {\"contract\": [{\"filename\": \"table.csv\", \"description\": \"a table\"}]}, \"ts\": \"2026-11-26T08:03:00.494Z\"}","call_id":"call_1","meta":{"tool_call_id":"call_1"}},{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"text/markdown","path":"tc:turn_1.call_1.result","text":"Runtime error: none\nProduced files:\n- turn_1/files/table.csv\nProgram log (tail):\nwrote it","call_id":"call_1","meta":{"tool_call_id":"call_1"}},{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"application/json","path":"tc:turn_1.call_1.result","text":"{\"artifact_path\": \"fi:turn_1.files/table.csv\", \"physical_path\": \"turn_1/files/table.csv\", \"mime\": \"text/csv\", \"kind\": \"file\", \"visibility\": \"external\", \"tool_call_id\": \"call_1\", \"tool_id\": \"exec_tools.execute_code_python\", \"ts\": \"2026-11-26T08:03:00.494Z\", \"size_bytes\": 8, \"sha256\": \"492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470\", \"description\": \"a table\", \"tokens\": 8, \"sid\": 10002}","call_id":"call_1","meta":{"tool_call_id":"call_1"}},{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.494Z","mime":"text/csv","path":"fi:turn_1.files/table.csv","text":"a,b\n1,2\n","call_id":"call_1","meta":{"digest":"{\"artifact_path\": \"fi:turn_1.files/table.csv\", \"physical_path\": \"turn_1/files/table.csv\", \"mime\": \"text/csv\", \"kind\": \"file\", \"visibility\": \"external\", \"tool_call_id\": \"call_1\", \"tool_id\": \"exec_tools.execute_code_python\", \"ts\": \"2026-11-26T08:03:00.494Z\", \"size_bytes\": 8, \"sha256\": \"492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470\", \"description\": \"a table\", \"tokens\": 8, \"sid\": 10002}","hosted_uri":"file://proofbox/hosted/files/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","rn":"ef:acme:books:chatbot:file:ann:conv-1:turn_1:artifact:table.csv","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","physical_path":"turn_1/files/table.csv","tool_call_id":"call_1"}}],"artifacts":[{"logical_path":"fi:turn_1.files/table.csv","physical_path":"turn_1/files/table.csv","mime":"text/csv","kind":"file","visibility":"external","verdict":"produced","message":null,"size_bytes":8,"sid":10002,"sha256":"492d5ea496056f1a6a6592241032fab764c321596317930b4fa0e1e8bc3b7470","hosted_uri":"file://proofbox/hosted/files/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","rn":"ef:acme:books:chatbot:file:ann:conv-1:turn_1:artifact:table.csv","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv"}],"rehosted":[{"asked":"workspace","source":"store","physical_path":"turn_1/attachments/notes.txt","sha256":"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf","size_bytes":11,"ms":1.766}],"timings_ms":{"queue":0.049,"acquire":0.092,"rehost":15.842,"run":0.159,"validate":0.079,"host":16.474,"total":33.971},"usage":{"exit_code":0,"signal":null,"cpu_ms":0.0,"memory_peak_bytes":null,"stdout_bytes":9,"stderr_bytes":0},"sandbox":{"engine":"fake","runtime":"none","image_digest":"sha256:0","acquired":"cold","tier":"shared_kernel","user_namespace":false}}',NULL);
INSERT INTO "calls" VALUES(2,1,'call_2','b75f4363eefb2f8f2fab69fc3432165783520d0f9ddf6ab36e316b77d97c0e5d','done','boot-1','2026-11-26T08:03:00.507Z','{"tool_id":"react.read","tool_call_id":"call_2","conversation_id":"conv-1","turn_id":"turn_1","params":{"paths":["notes.txt"]},"code":null,"notes":null,"sources_pool":[],"timeline":null,"assets":[],"limits":{"wall_s":null,"cpus":null,"memory_bytes":null,"pids":null,"out_dir_bytes":null,"out_dir_inodes":null,"file_bytes":null,"files":null,"depth":null,"output_bytes":null,"artifact_bytes":null}}','{"ok":true,"error":null,"ret":{"paths":["notes.txt"],"missing":[],"missing_skills":[],"exists_in_visible_context":[],"total_tokens":183},"report":"Loaded: fi:turn_1.user.attachments/notes.txt","output":{"stdout":"","stderr":"","combined":"","truncated":false},"blocks":[{"type":"react.tool.call","author":"react","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"application/json","path":"tc:turn_1.call_2.call","text":"{\"tool_id\": \"react.read\", \"tool_call_id\": \"call_2\", \"params\": {\"paths\": [\"notes.txt\"]}, \"ts\": \"2026-11-26T08:03:00.530Z\"}","call_id":"call_2","meta":{"tool_call_id":"call_2"}},{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"application/json","path":"tc:turn_1.call_2.result","text":"{\"paths\": [\"notes.txt\"], \"missing\": [], \"missing_skills\": [], \"exists_in_visible_context\": [], \"total_tokens\": 183}","call_id":"call_2","meta":{"tool_call_id":"call_2"}},{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"application/json","path":"tc:turn_1.call_2.result","text":"{\"artifact_path\": \"fi:turn_1.user.attachments/notes.txt\", \"physical_path\": \"turn_1/attachments/notes.txt\", \"mime\": \"text/plain\", \"kind\": \"file\", \"visibility\": \"external\", \"ts\": \"2026-11-26T08:03:00.385Z\", \"size_bytes\": 11, \"sha256\": \"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf\", \"sid\": 10001, \"tokens\": 3}","call_id":"call_2","meta":{"hidden":false,"tool_call_id":"call_2"}},{"type":"react.tool.result","author":"proofbox","turn_id":"turn_1","ts":"2026-11-26T08:03:00.530Z","mime":"text/plain","path":"fi:turn_1.user.attachments/notes.txt","text":"some notes\n","call_id":"call_2","meta":{"digest":"{\"artifact_path\": \"fi:turn_1.user.attachments/notes.txt\", \"physical_path\": \"turn_1/attachments/notes.txt\", \"mime\": \"text/plain\", \"kind\": \"file\", \"visibility\": \"external\", \"ts\": \"2026-11-26T08:03:00.385Z\", \"size_bytes\": 11, \"sha256\": \"af94040caa54ae89a0460096007629185ce8d17256b0ba0ed7691ef4500449bf\", \"sid\": 10001, \"tokens\": 3}","hosted_uri":"file://proofbox/hosted/attachments/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","rn":"ef:acme:books:chatbot:attachment:ann:conv-1:turn_1:artifact:notes.txt","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","physical_path":"turn_1/attachments/notes.txt","hidden":false,"tool_call_id":"call_2"}}],"artifacts":[],"rehosted":[],"timings_ms":{"queue":0.0,"acquire":0.0,"rehost":0.0,"run":0.0,"validate":0.0,"host":0.0,"total":25.419},"usage":{"exit_code":null,"signal":null,"cpu_ms":0.0,"memory_peak_bytes":null,"stdout_bytes":0,"stderr_bytes":0},"sandbox":null}',NULL);
CREATE TABLE chains (
	id INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	project TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (tenant, project)
);
INSERT INTO "chains" VALUES(1,'acme','books');
CREATE TABLE conversations (
	id INTEGER NOT NULL,
	principal INTEGER NOT NULL,
	name TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (principal, name),
	FOREIGN KEY(principal) REFERENCES principals (id)
);
INSERT INTO "conversations" VALUES(1,1,'conv-1');
INSERT INTO "conversations" VALUES(2,1,'empty');
CREATE TABLE idempotency_keys (
	principal INTEGER NOT NULL,
	name TEXT NOT NULL,
	call INTEGER NOT NULL,
	PRIMARY KEY (principal, name),
	FOREIGN KEY(principal) REFERENCES principals (id),
	FOREIGN KEY(call) REFERENCES calls (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
INSERT INTO "idempotency_keys" VALUES(1,'once',1);
CREATE TABLE passages (
	id INTEGER NOT NULL,
	conversation INTEGER NOT NULL,
	position INTEGER NOT NULL,
	turn TEXT NOT NULL,
	target TEXT NOT NULL,
	ts TEXT NOT NULL,
	path TEXT NOT NULL,
	text TEXT NOT NULL,
	vector BLOB NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
CREATE TABLE passages_through (
	conversation INTEGER NOT NULL,
	position INTEGER NOT NULL,
	PRIMARY KEY (conversation),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
CREATE TABLE principals (
	id INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	project TEXT NOT NULL,
	user_type TEXT NOT NULL,
	user TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (tenant, project, user_type, user)
);
INSERT INTO "principals" VALUES(1,'acme','books','registered','ann');
CREATE TABLE sources (
	conversation INTEGER NOT NULL,
	sid INTEGER NOT NULL,
	file TEXT,
	source TEXT NOT NULL,
	url TEXT,
	PRIMARY KEY (conversation, sid),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
);
INSERT INTO "sources" VALUES(1,10001,'fi:turn_1.user.attachments/notes.txt','{"sid":10001,"source_type":"attachment","title":"notes.txt","mime":"text/plain","size_bytes":11,"artifact_path":"fi:turn_1.user.attachments/notes.txt","physical_path":"turn_1/attachments/notes.txt","hosted_uri":"file://proofbox/hosted/attachments/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","rn":"ef:acme:books:chatbot:attachment:ann:conv-1:turn_1:artifact:notes.txt","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/notes.txt","turn_id":"turn_1"}',NULL);
INSERT INTO "sources" VALUES(1,10002,'fi:turn_1.files/table.csv','{"sid":10002,"source_type":"file","title":"table.csv","mime":"text/csv","size_bytes":8,"artifact_path":"fi:turn_1.files/table.csv","physical_path":"turn_1/files/table.csv","hosted_uri":"file://proofbox/hosted/files/1/cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","rn":"ef:acme:books:chatbot:file:ann:conv-1:turn_1:artifact:table.csv","key":"cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/table.csv","turn_id":"turn_1"}',NULL);
CREATE TABLE turns (
	conversation INTEGER NOT NULL,
	turn TEXT NOT NULL,
	first INTEGER NOT NULL,
	last INTEGER NOT NULL,
	PRIMARY KEY (conversation, turn),
	FOREIGN KEY(conversation) REFERENCES conversations (id)
)
 WITHOUT ROWID
;
INSERT INTO "turns" VALUES(1,'turn_1',1,12);
INSERT INTO "turns" VALUES(2,'turn_1',1,1);
CREATE TABLE unfinished (
	id INTEGER NOT NULL,
	save TEXT NOT NULL,
	name TEXT NOT NULL,
	PRIMARY KEY (id)
);
CREATE INDEX unfinished_name ON unfinished (name);
CREATE INDEX unfinished_save ON unfinished (save);
CREATE INDEX artifacts_newest ON artifacts (conversation, id);
CREATE INDEX artifacts_sha256 ON artifacts (sha256);
CREATE INDEX artifacts_hosted ON artifacts (hosted_name) WHERE hosted_name IS NOT NULL;
CREATE INDEX sources_file ON sources (conversation, file, sid) WHERE file IS NOT NULL;
CREATE INDEX sources_url ON sources (conversation, url, sid) WHERE url IS NOT NULL;
CREATE INDEX calls_tool_call_id ON calls (tool_call_id);
CREATE INDEX calls_open ON calls (boot_id) WHERE state = 'open';
CREATE INDEX blocks_call ON blocks (conversation, call_id, position) WHERE call_id IS NOT NULL;
CREATE INDEX blocks_turn ON blocks (conversation, turn, position);
CREATE INDEX blocks_path ON blocks (conversation, path, position);
CREATE INDEX blocks_describes ON blocks (conversation, describes, position) WHERE describes IS NOT NULL;
CREATE INDEX blocks_hides ON blocks (conversation, position) WHERE hides IS NOT NULL;
CREATE INDEX passages_conversation ON passages (conversation, target, ts);
CREATE INDEX idempotency_keys_call ON idempotency_keys (call);
COMMIT;

//! The comparison must see every kind of mistake that a tracer can make.

use super::*;

/// One rank's lines, each `call args` or `call args = result`.
fn lines(text: &str) -> Vec<Vec<Json>> {
    let line = |line: &str| {
        let (call, rest) = line.trim().split_once(' ').unwrap();
        let (args, result) = rest.split_once(" = ").unwrap_or((rest, "0"));
        let json = format!(r#"{{"rank":0,"thread":0,"call":"MPI_{call}","args":{args},"result":{result}}}"#);
        Json::parse(&json).unwrap_or_else(|e| panic!("{json}: {e}"))
    };
    vec![text.lines().filter(|l| !l.trim().is_empty()).map(line).collect()]
}

#[track_caller]
fn same(witness: &str, dump: &str) {
    compare(&lines(dump), &lines(witness), Rules::default()).unwrap();
}

#[track_caller]
fn differs(witness: &str, dump: &str, why: &str) {
    let found = compare(&lines(dump), &lines(witness), Rules::default()).expect_err("no difference was seen");
    assert!(found.contains(why), "{found}");
}

#[test]
fn plain_arguments() {
    let send =
        r#"Send {"buf":"MPI_BOTTOM","count":1,"datatype":"MPI_INT","dest":"MPI_PROC_NULL","comm":"world"}"#;
    same(send, send);
    differs(send, &send.replace(":1", ":2"), "count: is 2 and should be 1");
    differs(send, &send.replace("MPI_INT", "MPI_LONG"), "datatype: is \"MPI_LONG\"");
    differs(send, &send.replace("\"MPI_PROC_NULL\"", "-1"), "dest: is -1");
    differs(send, &send.replace("MPI_BOTTOM", "heap#0+0"), "buf: is");
    differs(send, &send.replace("\"count\"", "\"n\""), "the parameters are");
    differs(send, &send.replace("Send", "Ssend"), "call is");
    differs(send, &format!("{send} = 5"), "result is 5");
    differs(send, "", "the dump has 0 calls, the witness 1");
    same("Bcast {\"datatype\":\"MPI_LONG_LONG\"}", "Bcast {\"datatype\":\"MPI_LONG_LONG_INT\"}");
}

#[test]
fn what_is_not_significant() {
    same("Gather {\"recvcount\":null}", "Gather {\"recvcount\":null}");
    differs("Gather {\"recvcount\":null}", "Gather {\"recvcount\":3}", "is 3 and should be null");
    differs("Gather {\"recvcount\":3}", "Gather {\"recvcount\":null}", "is null and should be 3");
    same("Test {\"status\":{\"maybe\":\"X\"}}", "Test {\"status\":null}");
    same("Test {\"status\":{\"maybe\":\"X\"}}", "Test {\"status\":\"X\"}");
    differs("Test {\"status\":{\"maybe\":\"X\"}}", "Test {\"status\":\"Y\"}", "should be \"X\"");
    same("Waitsome {\"array_of_indices\":[]}", "Waitsome {\"array_of_indices\":null}");
}

#[test]
fn statuses_and_lists() {
    let status = r#"Recv {"status":{"source":1,"tag":9,"bytes":4,"cancelled":false}}"#;
    let told = status.replace("false", "false,\"error\":null");
    same(status, &told);
    differs(status, &told.replace("null", "0"), "error is 0 and should be null");
    differs(status, &told.replace("4", "8"), "status: bytes is 8 and should be 4");
    // What a library leaves in a receive's mark of cancelled sends.
    same(&status.replace("false", "true"), &told);
    differs("A {\"x\":[1,2]}", "A {\"x\":[1]}", "is [1] and should be [1,2]");
    differs("A {\"x\":[1,2]}", "A {\"x\":[2,1]}", "is 2 and should be 1");
    let dims = "Dims_create {\"dims\":{\"in\":[0],\"out\":[4]}}";
    same(dims, dims);
    differs(dims, &dims.replace("4", "3"), "out is 3 and should be 4");
    differs(dims, &dims.replace("0", "1"), "in is 1 and should be 0");
    differs(dims, "Dims_create {\"dims\":[4]}", "is [4] and should be");
}

/// A request that this function makes, and what a wait for it may tell of what the memory holds.
fn status_of(maker: &str, told: &str) -> Result<Report, String> {
    let all = r#"{"source":1,"tag":9,"bytes":4,"cancelled":false}"#;
    let run = |made: &str, request: &str, status: &str| {
        let start = match maker.ends_with("_init") {
            true => format!("Start {{\"request\":\"{request}\"}}\n"),
            false => String::new(),
        };
        format!(
            "{maker} {{\"request\":\"{made}\"}}\n{start}Wait {{\"request\":\"{request}\",\"status\":{status}}}"
        )
    };
    let (witness, dump) = (run("req:0@0", "req:0", all), run("req#0", "req#0", told));
    compare(&lines(&dump), &lines(&witness), Rules::default())
}

#[test]
fn statuses_tell_what_is_defined() {
    let status = |source, tag, bytes, cancelled| {
        format!(r#"{{"source":{source},"tag":{tag},"bytes":{bytes},"cancelled":{cancelled},"error":null}}"#)
    };
    let message = status("1", "9", "4", "false");
    let send = status("null", "null", "null", "false");
    let file = status("null", "null", "4", "null");
    let kinds = [
        ("Irecv", &*message),
        ("Send_init", &*send),
        ("File_iread", &*file),
        ("Ibarrier", "null"),
        ("Grequest_start", "null"),
    ];
    for (maker, right) in kinds {
        for (_, told) in kinds {
            assert_eq!(status_of(maker, told).is_ok(), told == right, "{maker}: {told}");
        }
    }
}

const MAKE_TWO: &str = "Type_dup {\"newtype\":\"type:0\"}\nType_dup {\"newtype\":\"type:1\"}\n";

#[test]
fn objects_keep_their_names() {
    let made = "Type_dup {\"newtype\":\"type#0\"}\nType_dup {\"newtype\":\"type#1\"}\n";
    same(
        &format!("{MAKE_TWO}Send {{\"datatype\":\"type:1\"}}"),
        &format!("{made}Send {{\"datatype\":\"type#1\"}}"),
    );
    differs(
        &format!("{MAKE_TWO}Send {{\"datatype\":\"type:1\"}}"),
        &format!("{made}Send {{\"datatype\":\"type#0\"}}"),
        "type#0 is type:0 and should be type:1",
    );
    differs(
        MAKE_TWO,
        "Type_dup {\"newtype\":\"type#0\"}\nType_dup {\"newtype\":\"type#0\"}",
        "still the name of type:0",
    );
    differs(
        MAKE_TWO,
        "Type_dup {\"newtype\":\"type#0\"}\nType_dup {\"newtype\":\"op#1\"}",
        "does not name a type",
    );
    same(
        "Type_dup {\"newtype\":\"type:0\"}\nType_free {\"datatype\":\"type:0\"}\nType_dup {\"newtype\":\"type:1\"}",
        "Type_dup {\"newtype\":\"type#0\"}\nType_free {\"datatype\":\"type#0\"}\nType_dup {\"newtype\":\"type#0\"}",
    );
    differs(
        "Type_free {\"datatype\":\"type:0\"}",
        "Type_free {\"datatype\":\"type#0\"}",
        "type#0 names nothing yet",
    );
}

#[test]
fn requests_end_when_they_complete() {
    let witness =
        "Isend {\"request\":\"req:0@5\"}\nWait {\"request\":\"req:0\"}\nIsend {\"request\":\"req:1@5\"}";
    same(
        witness,
        "Isend {\"request\":\"req#0\"}\nWait {\"request\":\"req#0\"}\nIsend {\"request\":\"req#0\"}",
    );
    let persistent = witness.replace("Isend", "Send_init");
    differs(
        &persistent,
        "Send_init {\"request\":\"req#0\"}\nWait {\"request\":\"req#0\"}\nSend_init {\"request\":\"req#0\"}",
        "still the name of req:0",
    );
    // One handle for two operations: either will do, but not a third.
    let two =
        "Isend {\"request\":\"req:0@5\"}\nIsend {\"request\":\"req:1@5\"}\nIrecv {\"request\":\"req:2@6\"}\n";
    let named =
        "Isend {\"request\":\"req#0\"}\nIsend {\"request\":\"req#1\"}\nIrecv {\"request\":\"req#2\"}\n";
    let wait = |request: &str| format!("Wait {{\"request\":\"{request}\"}}");
    same(&format!("{two}{}", wait("req:@5")), &format!("{named}{}", wait("req#1")));
    differs(&format!("{two}{}", wait("req:@5")), &format!("{named}{}", wait("req#2")), "should be req:@5");
}

#[test]
fn memory_stays_where_it_is() {
    let two = |a: &str, b: &str| format!("A {{\"buf\":\"{a}\"}}\nA {{\"buf\":\"{b}\"}}");
    same(&two("@1000", "@1010"), &two("heap#0+0", "heap#0+16"));
    differs(&two("@1000", "@1010"), &two("heap#0+0", "heap#0+8"), "heap#0 started at @1000 before");
    differs(&two("@1000", "@1000"), &two("static#0+0", "static#1+0"), "@1000 was static#0+0 before");
    differs(&two("@1000", "@2000"), &two("stack#0+0", "stack#0+0"), "starts at @2000 now");
    let moves = Rules { heap_moves: true, ..Rules::default() };
    compare(&lines(&two("heap#0+0", "heap#0+0")), &lines(&two("@1000", "@2000")), moves).unwrap();
    let once = |a: &str, b: &str| lines(&format!("A {{\"sendbuf\":\"{a}\",\"recvbuf\":\"{b}\"}}"));
    let found = compare(&once("heap#0+0", "heap#0+0"), &once("@1000", "@2000"), moves).unwrap_err();
    assert!(found.contains("heap#0 started at @1000 before"), "{found}");
}

#[test]
fn offsets_by_tag() {
    let rules = Rules { heap_moves: true, tag_is_offset: true, ..Rules::default() };
    let call = |send: &str, receive: &str| {
        lines(&format!("Sendrecv {{\"sendbuf\":\"{send}\",\"sendtag\":16,\"recvbuf\":\"{receive}\"}}"))
    };
    let witness = call("@1010", "@2000");
    compare(&call("heap#0+16", "heap#1+0"), &witness, rules).unwrap();
    compare(&call("heap#0+8", "heap#1+0"), &witness, rules).unwrap_err();
    compare(&call("heap#0+16", "heap#1+4"), &witness, rules).unwrap_err();
    compare(&call("other#0+16", "heap#1+0"), &witness, rules).unwrap_err();
}

#[test]
fn members_agree_on_a_communicator() {
    let rank =
        |name: &str| lines(&format!("Comm_dup {{\"comm\":\"world\",\"newcomm\":\"{name}\"}}")).remove(0);
    communicators_agree(&[rank("world.0"), rank("world.0"), rank("MPI_COMM_NULL")]).unwrap();
    let found = communicators_agree(&[rank("world.0"), rank("world.1")]).unwrap_err();
    assert_eq!(found, "communicator 1 of world is world.0 on rank 0, world.1 on rank 1");
}

/// Of a persistent send that is not started the whole status is defined: it is empty.
#[test]
fn statuses_of_inactive_requests() {
    let empty = r#""status":{"source":"MPI_ANY_SOURCE","tag":"MPI_ANY_TAG","bytes":0,"cancelled":false}"#;
    let told = empty.replace("false", "false,\"error\":null");
    let nothing = r#""status":{"source":null,"tag":null,"bytes":null,"cancelled":false,"error":null}"#;
    let made = |id: &str| format!("Send_init {{\"request\":{id}}}\n");
    let start = |id: &str| format!("Start {{\"request\":{id}}}\n");
    let wait = |id: &str, status: &str| format!("Wait {{\"request\":{id},{status}}}\n");
    let lines = |new: &str, id: &str, first: &str, second: &str, third: &str| {
        made(new) + &wait(id, first) + &start(id) + &wait(id, second) + &wait(id, third)
    };
    let witness = lines("\"req:0@7\"", "\"req:0\"", empty, empty, empty);
    let dump = |first: &str, second: &str, third: &str| lines("\"req#0\"", "\"req#0\"", first, second, third);
    same(&witness, &dump(&told, nothing, &told));
    differs(&witness, &dump(nothing, nothing, &told), "status: source");
    differs(&witness, &dump(&told, &told, &told), "status: source");
    differs(&witness, &dump(&told, nothing, nothing), "status: source");
}

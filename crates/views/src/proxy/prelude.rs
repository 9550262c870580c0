//! The parts of a program that are the same in all programs which need them.

use refrain_model::{Dir, Function, Kind, function as by_name};

use super::code::wrapped;
use super::registry::spelled;

/// Numbers one after the other, out of a table.
pub(super) const STREAMS: &str = "\
/* Numbers that change from call to call, as rows of a table. */
#define N(number) {number, 0, 1, 0}                /* one number */
#define X(number, count) {number, 0, count, 0}     /* the same so many times */
#define S(start, step, count) {start, step, count, 0}
#define R(row, times) {row, 0, times, 1}           /* from that row to the next E, so many times */
#define E {0, 0, 0, 2}
#define ROWS(...) (const long long[][4]){__VA_ARGS__}

struct stream {
    const long long (*rows)[4];
    long long done, left[64];
    int at, depth, from[64];
};

static long long next(struct stream *s)
{
    for (;;) {
        const long long *row = s->rows[s->at];
        if (row[3] == 0) {
            if (s->done < row[2])
                return row[0] + row[1] * s->done++;
            s->done = 0;
            s->at++;
        } else if (row[3] == 1) {
            s->from[s->depth] = s->at;
            s->left[s->depth++] = row[2];
            s->at = (int)row[0];
        } else if (s->depth == 0) {
            return 0;
        } else if (--s->left[s->depth - 1] > 0) {
            s->at = (int)s->rows[s->from[s->depth - 1]][0];
        } else {
            s->at = s->from[--s->depth] + 1;
        }
    }
}
";

/// The time between calls.
pub(super) const COMPUTE: &str = "\
/* What the program did between its calls: nothing but pass the time, in nanoseconds. -DCOMPUTE=0 leaves it out, and
   -DCOMPUTE=0.5 makes it half as long. */
#ifndef COMPUTE
#define COMPUTE 1.0
#endif

static void compute(double nanoseconds)
{
    struct timespec now, start;
    if (COMPUTE <= 0)
        return;
    timespec_get(&start, TIME_UTC);
    do
        timespec_get(&now, TIME_UTC);
    while ((double)(now.tv_sec - start.tv_sec) * 1e9 + (double)(now.tv_nsec - start.tv_nsec) <
           nanoseconds * COMPUTE);
}
";

/// How calls are made for which the library has a choice.
pub(super) const FORCED: &str = "\
/* Where MPI has a choice - which request is complete, whose message comes - what it chose then is chosen again: another
   function is called that leaves it none. A tracer of Refrain sees the call that is meant, and hears from here what to do
   in its place. */
typedef void (*function)(void);
#ifdef __GNUC__
extern void refrain_replays_by(function (*)(const char *)) __attribute__((weak));
extern function refrain_unseen(const char *) __attribute__((weak));
#define TRACED (refrain_replays_by && refrain_unseen)
#else
#define TRACED 0
static void refrain_replays_by(function (*by)(const char *)) { (void)by; }
static function refrain_unseen(const char *name) { (void)name; return 0; }
#endif
#define AS_THEN(name) (TRACED ? MPI_##name : then_##name)
#define UNSEEN(name) if (TRACED && refrain_unseen(\"MPI_\" #name)) real_##name = (__typeof__(real_##name))refrain_unseen(\"MPI_\" #name)
";

/// Functions that are always forced.
pub(super) const ALWAYS: [&str; 13] = [
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Request_get_status",
    "MPI_Win_test",
    "MPI_Parrived",
    "MPI_Iprobe",
    "MPI_Improbe",
];

/// Of a function that may be forced: those of the library that are called in its place, and the one of ours.
pub(super) fn forced(name: &str) -> Option<(Vec<&'static str>, String)> {
    match chosen(name) {
        Some((real, text)) => Some((real.to_vec(), text.to_owned())),
        None => receive(by_name(name)?),
    }
}

/// Whether a function asks for a message.
pub(super) fn is_receive(name: &str) -> bool {
    by_name(name).is_some_and(|function| function.index_of("source").is_some())
}

/// A receive of what came then.
fn receive(function: &'static Function) -> Option<(Vec<&'static str>, String)> {
    function.index_of("source")?;
    let short = function.name.trim_start_matches("MPI_");
    let (mut params, mut words) = (Vec::new(), Vec::new());
    for p in function.params {
        let by_pointer = p.dir != Dir::In && p.kind != Kind::Buffer;
        params.push(match (p.kind, p.dir) {
            (Kind::Buffer, Dir::In) => format!("const void *{}", p.name),
            (Kind::Buffer, _) => format!("void *{}", p.name),
            _ => format!("{} {}{}", spelled(p.ctype), if by_pointer { "*" } else { "" }, p.name),
        });
        words.push(match p.name {
            "source" => "SOURCE(source)".to_owned(),
            "tag" | "recvtag" => format!("TAG({})", p.name),
            name => name.to_owned(),
        });
    }
    let head = wrapped(&format!("static int then_{short}({})", params.join(", "))).join("\n");
    let call = wrapped(&format!("return taken(real_{short}({}));", words.join(", "))).join("\n    ");
    Some((vec![short], format!("{head}\n{{\n    {call}\n}}\n")))
}

fn chosen(name: &str) -> Option<(&'static [&'static str], &'static str)> {
    Some(match name {
        "MPI_Init" => (
            &["Init", "Comm_rank", "Comm_size", "Finalize", "Abort"],
            "\
static int then_Init(int *argc, char ***argv)
{
    int code = real_Init(argc, argv);
    begin();
    return code;
}
",
        ),
        "MPI_Init_thread" => (
            &["Init_thread", "Comm_rank", "Comm_size", "Finalize", "Abort"],
            "\
static int then_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = real_Init_thread(argc, argv, required, provided);
    begin();
    return code;
}
",
        ),
        "MPI_Waitany" => (
            &["Wait", "Waitany"],
            "\
static int then_Waitany(int count, MPI_Request all[], int *which, MPI_Status *status_of)
{
    if (chosen[0] < 0 || chosen[0] >= count)
        return real_Waitany(count, all, which, status_of);
    *which = chosen[0];
    return real_Wait(&all[chosen[0]], status_of);
}
",
        ),
        "MPI_Testany" => (
            &["Wait", "Testany"],
            "\
static int then_Testany(int count, MPI_Request all[], int *which, int *flag, MPI_Status *status_of)
{
    if (chosen[0] < 0 || chosen[0] >= count)
        return real_Testany(count, all, which, flag, status_of);
    *which = chosen[0];
    *flag = 1;
    return real_Wait(&all[chosen[0]], status_of);
}
",
        ),
        "MPI_Waitsome" => (
            &["Wait", "Waitsome"],
            "\
static int then_Waitsome(int count, MPI_Request all[], int *done, int which[], MPI_Status statuses_of[])
{
    int code = MPI_SUCCESS;
    if (chosen_count == 0)
        return real_Waitsome(count, all, done, which, statuses_of);
    for (int k = 0; k < chosen_count && code == MPI_SUCCESS; k++) {
        which[k] = chosen[k];
        code = real_Wait(&all[chosen[k]], statuses_of == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses_of[k]);
    }
    *done = chosen_count;
    return code;
}
",
        ),
        "MPI_Testsome" => (
            &["Wait", "Testsome"],
            "\
static int then_Testsome(int count, MPI_Request all[], int *done, int which[], MPI_Status statuses_of[])
{
    int code = MPI_SUCCESS;
    if (chosen_count == 0)
        return real_Testsome(count, all, done, which, statuses_of);
    for (int k = 0; k < chosen_count && code == MPI_SUCCESS; k++) {
        which[k] = chosen[k];
        code = real_Wait(&all[chosen[k]], statuses_of == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses_of[k]);
    }
    *done = chosen_count;
    return code;
}
",
        ),
        "MPI_Test" => (
            &["Wait"],
            "\
static int then_Test(MPI_Request *one, int *flag, MPI_Status *status_of)
{
    *flag = 1;
    return real_Wait(one, status_of);
}
",
        ),
        "MPI_Testall" => (
            &["Waitall"],
            "\
static int then_Testall(int count, MPI_Request all[], int *flag, MPI_Status statuses_of[])
{
    *flag = 1;
    return real_Waitall(count, all, statuses_of);
}
",
        ),
        "MPI_Request_get_status" => (
            &["Request_get_status"],
            "\
static int then_Request_get_status(MPI_Request one, int *flag, MPI_Status *status_of)
{
    int code;
    do
        code = real_Request_get_status(one, flag, status_of);
    while (code == MPI_SUCCESS && !*flag);
    return code;
}
",
        ),
        "MPI_Win_test" => (
            &["Win_test"],
            "\
static int then_Win_test(MPI_Win of, int *flag)
{
    int code;
    do
        code = real_Win_test(of, flag);
    while (code == MPI_SUCCESS && !*flag);
    return code;
}
",
        ),
        "MPI_Parrived" => (
            &["Parrived"],
            "\
static int then_Parrived(MPI_Request one, int part, int *flag)
{
    int code;
    *flag = 0;
    if (!chosen[0])
        return MPI_SUCCESS;
    do
        code = real_Parrived(one, part, flag);
    while (code == MPI_SUCCESS && !*flag);
    return code;
}
",
        ),
        "MPI_Iprobe" => (
            &["Probe"],
            "\
static int then_Iprobe(int source, int tag, MPI_Comm in, int *flag, MPI_Status *status_of)
{
    *flag = 1;
    return taken(real_Probe(SOURCE(source), TAG(tag), in, status_of));
}
",
        ),
        "MPI_Improbe" => (
            &["Mprobe"],
            "\
static int then_Improbe(int source, int tag, MPI_Comm in, int *flag, MPI_Message *got, MPI_Status *status_of)
{
    *flag = 1;
    return taken(real_Mprobe(SOURCE(source), TAG(tag), in, got, status_of));
}
",
        ),
        _ => return None,
    })
}

/// Functions in place of the program's own, which are not in a trace: they compute nothing. Parameters, and what they do.
pub(super) fn stand_in(ctype: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match ctype {
        "MPI_User_function" => (
            "void",
            "void *a, void *b, int *count, MPI_Datatype *of",
            "(void)a, (void)b, (void)count, (void)of;",
        ),
        "MPI_User_function_c" => (
            "void",
            "void *a, void *b, MPI_Count *count, MPI_Datatype *of",
            "(void)a, (void)b, (void)count, (void)of;",
        ),
        "MPI_Datarep_extent_function" => (
            "int",
            "MPI_Datatype of, MPI_Aint *bytes, void *extra",
            "int size_of = 0; (void)extra; PMPI_Type_size(of, &size_of); *bytes = size_of; return MPI_SUCCESS;",
        ),
        "MPI_Comm_copy_attr_function" | "MPI_Copy_function" => (
            "int",
            "MPI_Comm of, int key, void *extra, void *in, void *out, int *flag",
            "(void)of, (void)key, (void)extra; *(void **)out = in; *flag = 1; return MPI_SUCCESS;",
        ),
        "MPI_Type_copy_attr_function" => (
            "int",
            "MPI_Datatype of, int key, void *extra, void *in, void *out, int *flag",
            "(void)of, (void)key, (void)extra; *(void **)out = in; *flag = 1; return MPI_SUCCESS;",
        ),
        "MPI_Win_copy_attr_function" => (
            "int",
            "MPI_Win of, int key, void *extra, void *in, void *out, int *flag",
            "(void)of, (void)key, (void)extra; *(void **)out = in; *flag = 1; return MPI_SUCCESS;",
        ),
        "MPI_Comm_delete_attr_function" | "MPI_Delete_function" => (
            "int",
            "MPI_Comm of, int key, void *value, void *extra",
            "(void)of, (void)key, (void)value, (void)extra; return MPI_SUCCESS;",
        ),
        "MPI_Type_delete_attr_function" => (
            "int",
            "MPI_Datatype of, int key, void *value, void *extra",
            "(void)of, (void)key, (void)value, (void)extra; return MPI_SUCCESS;",
        ),
        "MPI_Win_delete_attr_function" => (
            "int",
            "MPI_Win of, int key, void *value, void *extra",
            "(void)of, (void)key, (void)value, (void)extra; return MPI_SUCCESS;",
        ),
        "MPI_Comm_errhandler_function" | "MPI_Handler_function" => {
            ("void", "MPI_Comm *of, int *code, ...", "(void)of, (void)code;")
        }
        "MPI_Win_errhandler_function" => ("void", "MPI_Win *of, int *code, ...", "(void)of, (void)code;"),
        "MPI_File_errhandler_function" => ("void", "MPI_File *of, int *code, ...", "(void)of, (void)code;"),
        "MPI_Grequest_query_function" => {
            ("int", "void *extra, MPI_Status *of", "(void)extra, (void)of; return MPI_SUCCESS;")
        }
        "MPI_Grequest_free_function" => ("int", "void *extra", "(void)extra; return MPI_SUCCESS;"),
        "MPI_Grequest_cancel_function" => {
            ("int", "void *extra, int complete", "(void)extra, (void)complete; return MPI_SUCCESS;")
        }
        _ => return None,
    })
}

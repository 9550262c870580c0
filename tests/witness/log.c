/* Lines, slots, and where the next function is. */
#define _GNU_SOURCE
#include "witness.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 16, LEVELS = 8 };

__thread int witness_depth, witness_program, witness_entry, witness_significant, witness_ok;
__thread void *witness_caller;

struct slot {
    const char *name;
    size_t start;
};

static __thread struct {
    char *text;
    size_t used, room;
    struct slot slots[SLOTS];
    int count;
    long long began, ended;
} lines[LEVELS]; /* one for each call the thread is in */
#define line lines[witness_depth - 1]

static __thread int thread; /* 1 + the thread's number */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static char *pending; /* lines from before the rank was known */
static size_t pending_size;
static FILE *pending_file;
static int rank = -1;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "witness: %s: %s\n", what, which);
    abort();
}

void *next_function(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        die("no such function in the next library", name);
    return found;
}

void *library_function(const char *name)
{
    static void *library;
    static const char *const names[] = {
#ifdef OPEN_MPI
        "libmpi.so.40", "libmpi.so.80",
#else
        "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1",
#endif
    };
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        die("the MPI library is not loaded", name);
    void *found = dlsym(library, name);
    if (!found)
        die("not in the MPI library", name);
    return found;
}

void put(const char *format, ...)
{
    for (;;) {
        va_list arguments;
        va_start(arguments, format);
        size_t room = line.room - line.used;
        int length = vsnprintf(line.text ? line.text + line.used : NULL, room, format, arguments);
        va_end(arguments);
        if (length < 0)
            die("cannot format", format);
        if ((size_t)length < room) {
            line.used += (size_t)length;
            return;
        }
        line.room = 2 * line.room + (size_t)length + 256;
        line.text = realloc(line.text, line.room);
        if (!line.text)
            die("out of memory", format);
    }
}

void put_string(const char *text, int length)
{
    if (!text) {
        put("null");
        return;
    }
    put("\"");
    for (int i = 0; length < 0 ? text[i] != 0 : i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            put("\\%c", c);
        else if (c < 0x20)
            put("\\u%04x", c);
        else
            put("%c", c);
    }
    put("\"");
}

int from_library(void *caller)
{
    Dl_info info, own;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return 0;
    /* MPI_Keyval_create ends in a jump to MPI_Comm_create_keyval, which then returns to whoever called the former. */
    if (dladdr(&line_begin, &own) && info.dli_fbase == own.dli_fbase)
        return 1;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    return !strncmp(name, "libmpich.so", 11) || !strncmp(name, "libmpi.so", 9) || !strncmp(name, "mca_", 4)
           || !strncmp(name, "librefrain", 10);
}

int on_the_way(void *caller, const char *name)
{
    /* What layers ask about. Of other calls the nearest name need not be that of the function: not all have one. */
    static const char *const asked[] = {"Comm_size", "Comm_remote_size", "Comm_test_inter", "Cartdim_get",
                                        "Dist_graph_neighbors_count"};
    int known = 0;
    for (unsigned i = 0; i < sizeof asked / sizeof *asked; i++)
        known |= !strcmp(asked[i], name);
    Dl_info info;
    if (!known || !dladdr(caller, &info) || !info.dli_fname || !info.dli_sname)
        return 0;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    int layer = !strncmp(file, "libmpi_mpifh", 12) || !strncmp(file, "libmpi_usempi", 13)
                || !strncmp(file, "libmpichfort", 12);
    return layer && !strcasestr(info.dli_sname, name);
}

/* Functions of the program that MPI calls. Each has one of `callbacks` to its name, which is called by MPI with up to
 * seven words and marks the thread as being in the program while it passes them on. */
enum { CALLBACKS = 64 };
static void *programs[CALLBACKS];
static int programs_known;

static long in_program(int which, long a, long b, long c, long d, long e, long f, long g)
{
    int outside = witness_program;
    witness_program = witness_depth;
    long result = ((long (*)(long, long, long, long, long, long, long))programs[which])(a, b, c, d, e, f, g);
    witness_program = outside;
    return result;
}

#define CALLBACK(n)                                                                                                 \
    static long callback_##n(long a, long b, long c, long d, long e, long f, long g)                                \
    {                                                                                                               \
        return in_program(n, a, b, c, d, e, f, g);                                                                  \
    }
#define EIGHT(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7)
#define ALL(of) EIGHT(of, 00) EIGHT(of, 01) EIGHT(of, 02) EIGHT(of, 03) EIGHT(of, 04) EIGHT(of, 05) EIGHT(of, 06) EIGHT(of, 07)
ALL(CALLBACK) /* 000 to 077 are octal */
#define NAMED(n) callback_##n,
static long (*const callbacks[CALLBACKS])(long, long, long, long, long, long, long) = {ALL(NAMED)};

void *stand_in(void *function)
{
    /* Null, or one of MPI's own: MPI_COMM_DUP_FN and the like. */
    if ((uintptr_t)function < 4096 || from_library(function))
        return function;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < programs_known && programs[i] != function)
        i++;
    if (i == CALLBACKS)
        die("too many functions", "that MPI is to call");
    programs[i] = function;
    if (i == programs_known)
        programs_known++;
    pthread_mutex_unlock(&lock);
    return (void *)callbacks[i];
}

void line_begin(void)
{
    if (++witness_depth > LEVELS)
        die("too deep", "callbacks in callbacks");
    line.used = 0;
    line.count = 0;
    witness_significant = 1;
    witness_ok = 1;
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void time_begin(void)
{
    line.began = now();
}

void time_end(void)
{
    line.ended = now();
}

void slot(const char *name)
{
    if (line.count == SLOTS)
        die("too many slots", name);
    put("%c", 0);
    line.slots[line.count++] = (struct slot){name, line.used};
}

/* Threads have the lowest number that is free when they are created, but those that MPI makes; a joined thread's number
 * is free again. */
enum { THREADS = 256 };
static struct numbered {
    int used;
    pthread_t id;
    void *(*start)(void *);
    void *argument;
} numbered[THREADS] = {{.used = 1}};
static pthread_mutex_t numbers = PTHREAD_MUTEX_INITIALIZER;

static int free_number(void)
{
    for (int i = 1; i < THREADS; i++)
        if (!numbered[i].used) {
            numbered[i].used = 1;
            return i;
        }
    die("too many threads", "at once");
    return 0;
}

static void *begin(void *at)
{
    struct numbered *own = at;
    pthread_mutex_lock(&numbers);
    own->id = pthread_self();
    pthread_mutex_unlock(&numbers);
    thread = (int)(own - numbered) + 1;
    return own->start(own->argument);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                                                          void *(*start)(void *), void *argument)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = next_function("pthread_create");
    if (witness_depth)
        return next(id, attributes, start, argument);
    pthread_mutex_lock(&numbers);
    int number = free_number();
    numbered[number].start = start;
    numbered[number].argument = argument;
    pthread_mutex_unlock(&numbers);
    int code = next(id, attributes, begin, &numbered[number]);
    if (code)
        numbered[number].used = 0;
    return code;
}

__attribute__((visibility("default"))) int pthread_join(pthread_t id, void **result)
{
    int (*next)(pthread_t, void **) = next_function("pthread_join");
    int code = next(id, result);
    pthread_mutex_lock(&numbers);
    for (int i = 1; !code && i < THREADS; i++)
        if (numbered[i].used && numbered[i].id && pthread_equal(numbered[i].id, id))
            numbered[i] = (struct numbered){0};
    pthread_mutex_unlock(&numbers);
    return code;
}

/* The calling thread's number. */
static int own_number(void)
{
    if (!thread && getpid() == gettid())
        thread = 1;
    if (!thread) {
        pthread_mutex_lock(&numbers);
        thread = free_number() + 1;
        pthread_mutex_unlock(&numbers);
    }
    return thread - 1;
}

/* The file is opened as soon as the rank in MPI_COMM_WORLD is known; lines wait in memory until then. */
static FILE *sink(void)
{
    if (file)
        return file;
    int initialized = 0, finalized = 0;
    ASK(MPI_Initialized, &initialized);
    ASK(MPI_Finalized, &finalized);
    if (!initialized || finalized) {
        if (!pending_file)
            pending_file = open_memstream(&pending, &pending_size);
        return pending_file;
    }
    const char *folder = getenv("WITNESS_DIR");
    if (!folder)
        die("not set", "WITNESS_DIR");
    ASK(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
    char path[4096];
    /* A world that another one started has ranks of its own. */
    MPI_Comm parent;
    ASK(MPI_Comm_get_parent, &parent);
    if (parent == MPI_COMM_NULL)
        snprintf(path, sizeof path, "%s/rank.%d.jsonl", folder, rank);
    else
        snprintf(path, sizeof path, "%s/spawned.%d.%d.jsonl", folder, (int)getpid(), rank);
    file = fopen(path, "w");
    if (!file)
        die("cannot write", path);
    if (pending_file) {
        fclose(pending_file);
        for (char *at = pending, *end; (end = strchr(at, '\n')); at = end + 1)
            fprintf(file, "{\"rank\":%d,%.*s\n", rank, (int)(end - at), at);
        free(pending);
    }
    return file;
}

/* `params` is the parenthesised list of parameter names, as the source has it. */
void line_end(const char *call, const char *params, int has_result, long result)
{
    put("%c", 0);
    pthread_mutex_lock(&lock);
    FILE *out = sink();
    if (out == file)
        fprintf(out, "{\"rank\":%d,", rank);
    fprintf(out, "\"thread\":%d,\"call\":\"%s\",\"args\":{", own_number(), call);
    int written = 0;
    for (const char *at = params + strspn(params, "( "); *at && *at != ')'; at += strspn(at, ", ")) {
        size_t length = strcspn(at, ", )");
        int i = 0;
        while (i < line.count && (strlen(line.slots[i].name) != length || memcmp(line.slots[i].name, at, length)))
            i++;
        if (i == line.count)
            die("an argument was not logged", at);
        fprintf(out, "%s\"%.*s\":%s", written++ ? "," : "", (int)length, at, line.text + line.slots[i].start);
        at += length;
    }
    if (written != line.count)
        die("an argument was logged twice", call);
    fprintf(out, "},\"began\":%lld,\"ended\":%lld,", line.began, line.ended);
    if (has_result)
        fprintf(out, "\"result\":%ld}\n", result);
    else
        fprintf(out, "\"result\":null}\n");
    fflush(out);
    pthread_mutex_unlock(&lock);
    witness_depth--;
}

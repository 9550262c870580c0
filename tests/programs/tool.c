/* The tool interface: control variables, categories, performance variables and enumerations where there are any. */
#include "common.h"

static char name[512], text[8192];
static int name_length, text_length;

static void room(void) { name_length = sizeof name, text_length = sizeof text; }

static void control(void)
{
    int number, verbosity, bind, scope, index, count, value[64], read = 0, written = 0;
    MPI_Datatype type;
    MPI_T_enum kind;
    MPI_T_cvar_handle handle;
    MPI_T_cvar_get_num(&number);
    /* The first few, and on until one of each kind was met. */
    for (int i = 0; i < number && (i < 8 || !read || !written); i++) {
        room();
        if (MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &kind, text, &text_length, &bind, &scope))
            continue;
        MPI_T_cvar_get_index(name, &index);
        checksum += index == i;
#ifdef OPEN_MPI
        if (kind != MPI_T_ENUM_NULL) {
            int items, item;
            room();
            MPI_T_enum_get_info(kind, &items, name, &name_length);
            room();
            MPI_T_enum_get_item(kind, 0, &item, name, &name_length);
            checksum += items;
        }
#endif
        if (type != MPI_INT || bind != MPI_T_BIND_NO_OBJECT)
            continue;
        MPI_T_cvar_handle_alloc(i, NULL, &handle, &count);
        MPI_T_cvar_read(handle, value);
        read++;
        if (scope != MPI_T_SCOPE_CONSTANT && scope != MPI_T_SCOPE_READONLY) {
            MPI_T_cvar_write(handle, value);
            written++;
        }
        MPI_T_cvar_handle_free(&handle);
    }
    /* Less room than there is text. */
    name_length = 5, text_length = 3;
    MPI_T_cvar_get_info(0, name, &name_length, &verbosity, &type, &kind, text, &text_length, &bind, &scope);
    checksum += name_length;
    checksum += MPI_T_cvar_get_index("no such variable", &index) != MPI_SUCCESS;
    checksum += 100 * (read > 0) + 1000 * (written > 0);
}

static void categories(void)
{
    int number, index, controls, performances, inner, changed, list[256];
    MPI_T_category_get_num(&number);
    MPI_T_category_changed(&changed);
    for (int i = 0; i < number && i < 6; i++) {
        room();
        MPI_T_category_get_info(i, name, &name_length, text, &text_length, &controls, &performances, &inner);
        MPI_T_category_get_index(name, &index);
        MPI_T_category_get_cvars(i, controls < 256 ? controls : 256, list);
        MPI_T_category_get_pvars(i, performances, list);
        MPI_T_category_get_categories(i, inner < 256 ? inner : 256, list);
        checksum += index == i;
#ifndef OPEN_MPI
        MPI_T_category_get_num_events(i, &inner);
        MPI_T_category_get_events(i, inner, list);
#endif
    }
}

static void performance(void)
{
    int number, index;
    MPI_T_pvar_session session;
    MPI_T_pvar_get_num(&number);
    MPI_T_pvar_session_create(&session);
#ifdef OPEN_MPI
    int verbosity, class, bind, readonly, continuous, atomic, count;
    long value[16] = {0};
    MPI_Datatype type;
    MPI_T_enum kind;
    MPI_T_pvar_handle handle;
    room();
    MPI_T_pvar_get_info(0, name, &name_length, &verbosity, &class, &type, &kind, text, &text_length, &bind, &readonly,
                        &continuous, &atomic);
    MPI_T_pvar_get_index(name, class, &index);
    MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count);
    /* Which of these the variable allows is the library's affair; what they return is kept either way. */
    MPI_T_pvar_start(session, handle);
    MPI_T_pvar_read(session, handle, value);
    MPI_T_pvar_reset(session, handle);
    MPI_T_pvar_readreset(session, handle, value);
    MPI_T_pvar_write(session, handle, value);
    MPI_T_pvar_stop(session, handle);
    MPI_T_pvar_handle_free(session, &handle);
#endif
    checksum += MPI_T_pvar_get_index("no such variable", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS;
    MPI_T_pvar_session_free(&session);
#ifndef OPEN_MPI
    int events, sources;
    MPI_T_event_get_num(&events);
    MPI_T_source_get_num(&sources);
    checksum += events + sources + (MPI_T_event_get_index("no such event", &index) != MPI_SUCCESS);
#endif
}

int main(int argc, char **argv)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    start(&argc, &argv);
    control();
    categories();
    performance();
    MPI_T_finalize();
    finish("tool");
    return 0;
}

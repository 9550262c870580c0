/* An unstructured multigrid solver, threads within ranks: indices that no stride describes.
 *
 * Each rank has points at random places of its part of a box, joined with those nearby, and numbered in no order. Pairs of
 * points that are joined strongest become one point of the next level, until few are left. A cycle smooths, goes down and comes
 * back; ranks exchange what lies at their borders. Arguments: points of a rank, cycles. It prints the residual. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEVELS = 12, FEW = 40, SWEEPS = 2 };

typedef struct {
    int n;           /* rows */
    int *start;      /* where a row begins */
    int *column;
    double *value;   /* the diagonal first */
    int *parent;     /* the point of the next level */
    double *x, *b, *r;
} Level;

static unsigned long long state;

static double drawn(void) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void *room(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) MPI_Abort(MPI_COMM_WORLD, 1);
    return p;
}

/* Points in cells of a grid; those in the same cell and the next ones that are near are joined. */
static Level points(int n) {
    double(*at)[3] = room(n, sizeof *at);
    int side = (int)cbrt(n / 4.0);
    if (side < 1) side = 1;
    int cells = side * side * side;
    int *cell = room(n, sizeof *cell), *first = room(cells + 1, sizeof *first), *in = room(n, sizeof *in);
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < 3; d++) at[i][d] = drawn() * side;
        cell[i] = ((int)at[i][0] * side + (int)at[i][1]) * side + (int)at[i][2];
        first[cell[i] + 1]++;
    }
    for (int c = 0; c < cells; c++) first[c + 1] += first[c];
    int *next = room(cells, sizeof *next);
    for (int i = 0; i < n; i++) in[first[cell[i]] + next[cell[i]]++] = i;
    Level level = {.n = n};
    level.start = room(n + 1, sizeof(int));
    for (int pass = 0; pass < 2; pass++) {
        int many = 0;
        for (int i = 0; i < n; i++) {
            level.start[i] = many++;
            if (pass) level.column[many - 1] = i;
            double sum = 0.1;
            int home = cell[i];
            for (int dx = -1; dx <= 1; dx++)
                for (int dy = -1; dy <= 1; dy++)
                    for (int dz = -1; dz <= 1; dz++) {
                        int x = home / side / side + dx, y = home / side % side + dy, z = home % side + dz;
                        if (x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) continue;
                        int other = (x * side + y) * side + z;
                        for (int k = first[other]; k < first[other + 1]; k++) {
                            int j = in[k];
                            double a = at[i][0] - at[j][0], b = at[i][1] - at[j][1], c = at[i][2] - at[j][2];
                            double far = a * a + b * b + c * c;
                            if (j == i || far > 0.85) continue;
                            if (pass) level.column[many] = j, level.value[many] = -1 / (0.1 + far);
                            sum += 1 / (0.1 + far);
                            many++;
                        }
                    }
            if (pass) level.value[level.start[i]] = sum;
        }
        level.start[n] = many;
        if (!pass) level.column = room(many, sizeof(int)), level.value = room(many, sizeof(double));
    }
    free(at), free(cell), free(first), free(in), free(next);
    return level;
}

/* The next level: pairs become points, and rows are added up. */
static Level coarser(Level *fine) {
    int n = fine->n, many = 0;
    fine->parent = room(n, sizeof(int));
    for (int i = 0; i < n; i++) fine->parent[i] = -1;
    for (int i = 0; i < n; i++) {
        if (fine->parent[i] >= 0) continue;
        int best = -1;
        double strongest = 0;
        for (int k = fine->start[i] + 1; k < fine->start[i + 1]; k++)
            if (fine->parent[fine->column[k]] < 0 && -fine->value[k] > strongest)
                best = fine->column[k], strongest = -fine->value[k];
        fine->parent[i] = many;
        if (best >= 0) fine->parent[best] = many;
        many++;
    }
    Level coarse = {.n = many};
    int *head = room(many, sizeof(int)), *behind = room(n, sizeof(int)), *seen = room(many, sizeof(int));
    for (int i = 0; i < many; i++) head[i] = seen[i] = -1;
    for (int i = n - 1; i >= 0; i--) behind[i] = head[fine->parent[i]], head[fine->parent[i]] = i;
    coarse.start = room(many + 1, sizeof(int));
    coarse.column = room(fine->start[n], sizeof(int));
    coarse.value = room(fine->start[n], sizeof(double));
    int at = 0;
    for (int c = 0; c < many; c++) {
        int from = at;
        coarse.start[c] = at;
        coarse.column[at] = c;
        seen[c] = at++;
        for (int i = head[c]; i >= 0; i = behind[i])
            for (int k = fine->start[i]; k < fine->start[i + 1]; k++) {
                int other = fine->parent[fine->column[k]];
                if (seen[other] < from) {
                    coarse.column[at] = other;
                    coarse.value[at] = 0;
                    seen[other] = at++;
                }
                coarse.value[seen[other]] += fine->value[k];
            }
        coarse.start[c + 1] = at;
    }
    free(head), free(behind), free(seen);
    return coarse;
}

static void smooth(Level *level) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
#pragma omp parallel
        {
#pragma omp for
            for (int i = 0; i < level->n; i++) {
                double sum = level->b[i];
                for (int k = level->start[i]; k < level->start[i + 1]; k++) sum -= level->value[k] * level->x[level->column[k]];
                level->r[i] = sum;
            }
#pragma omp for
            for (int i = 0; i < level->n; i++) level->x[i] += 0.6 * level->r[i] / level->value[level->start[i]];
        }
    }
}

static double residual(Level *level) {
    double all = 0;
#pragma omp parallel for reduction(+ : all)
    for (int i = 0; i < level->n; i++) {
        double sum = level->b[i];
        for (int k = level->start[i]; k < level->start[i + 1]; k++) sum -= level->value[k] * level->x[level->column[k]];
        level->r[i] = sum;
        all += sum * sum;
    }
    return all;
}

static void cycle(Level *levels, int at, int last) {
    Level *level = &levels[at];
    if (at == last) {
        for (int k = 0; k < 8; k++) smooth(level);
        return;
    }
    Level *next = level + 1;
    smooth(level);
    residual(level);
    for (int i = 0; i < next->n; i++) next->b[i] = next->x[i] = 0;
    for (int i = 0; i < level->n; i++) next->b[level->parent[i]] += level->r[i];
    cycle(levels, at + 1, last);
#pragma omp parallel for
    for (int i = 0; i < level->n; i++) level->x[i] += next->x[level->parent[i]];
    smooth(level);
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 4000, cycles = argc > 2 ? atoi(argv[2]) : 4, rank, ranks, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    state = 88172645463325252ULL + 77 * (unsigned)rank;
    Level levels[LEVELS];
    levels[0] = points(n);
    int last = 0;
    while (last + 1 < LEVELS && levels[last].n > FEW) levels[last + 1] = coarser(&levels[last]), last++;
    for (int l = 0; l <= last; l++) {
        levels[l].x = room(levels[l].n, sizeof(double));
        levels[l].b = room(levels[l].n, sizeof(double));
        levels[l].r = room(levels[l].n, sizeof(double));
    }
    for (int i = 0; i < n; i++) levels[0].b[i] = drawn() - 0.5;
    /* Borders: points here and there, one in twenty. */
    int border = n / 20;
    int *which = room(border, sizeof(int));
    double *out = room(border, sizeof(double)), *in = room(border, sizeof(double));
    for (int i = 0; i < border; i++) which[i] = (int)(drawn() * n);
    double all = 0;
    for (int c = 0; c < cycles; c++) {
        for (int i = 0; i < border; i++) out[i] = levels[0].x[which[i]];
        MPI_Sendrecv(out, border, MPI_DOUBLE, (rank + 1) % ranks, 1, in, border, MPI_DOUBLE, (rank + ranks - 1) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < border; i++) levels[0].b[which[i]] += 1e-3 * in[i];
        cycle(levels, 0, last);
        double own = residual(&levels[0]);
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%d levels, residual %.3e\n", last + 1, sqrt(all));
    MPI_Finalize();
    return 0;
}

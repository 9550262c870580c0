// Buffers from new, new[], std::vector and std::string, moved and freed as C++ does. argv[1]: rounds (default 3).
// The C binding only: Open MPI still ships the C++ one.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include "common.h"

#include <memory>
#include <string>
#include <vector>

namespace {

void shift(const void *out, void *in, int count, MPI_Datatype type, int tag)
{
    MPI_Sendrecv(out, count, type, (rank + 1) % size, tag, in, count, type, (rank + size - 1) % size, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

} // namespace

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    for (int round = 0; round < rounds; round++) {
        std::vector<int> out(32), in(32);
        for (int i = 0; i < 32; i++)
            out[i] = rank * 32 + i + round;
        shift(out.data(), in.data(), 32, MPI_INT, 1);
        see(in.data(), 32);
        out.resize(4096, rank);
        in.resize(4096);
        shift(out.data() + 1024, in.data(), 1024, MPI_INT, 2);
        see(in.data(), 16);

        auto one = std::make_unique<int>(rank);
        int *two = new int[2]{0, 0};
        shift(one.get(), two + 1, 1, MPI_INT, 3);
        see(two, 2);
        delete[] two;

        std::string text = "rank " + std::to_string(rank) + " says more than a short string can hold", heard(text);
        text.resize(64, '.');
        heard.resize(64);
        shift(text.data(), &heard[0], 64, MPI_CHAR, 4);
        int letter = heard[5];
        see(&letter, 1);

        std::vector<MPI_Request> requests(size);
        std::vector<std::vector<int>> boxes(size, std::vector<int>(4));
        for (int peer = 0; peer < size; peer++)
            MPI_Irecv(boxes[peer].data(), 4, MPI_INT, peer, 5, MPI_COMM_WORLD, &requests[peer]);
        std::vector<MPI_Status> statuses(requests.size());
        for (int peer = 0; peer < size; peer++)
            MPI_Send(out.data(), 4, MPI_INT, peer, 5, MPI_COMM_WORLD);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data());
        for (const auto &box : boxes)
            see(box.data(), 4);
    }
    finish("cxx");
}

// C++'s own operators, containers and exceptions, which all allocate.
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

struct alignas(128) Wide { double values[16] = {1.0}; };

int main() {
    std::map<std::string, std::vector<int>> words;
    for (int i = 0; i < 5000; i++) words["word " + std::to_string(i % 700)].push_back(i);
    std::unique_ptr<Wide[]> wide(new Wide[10]);
    long sum = reinterpret_cast<std::uintptr_t>(wide.get()) % 128;
    for (auto &entry : words) for (int value : entry.second) sum += value;
    try {
        throw std::runtime_error("caught");
    } catch (const std::exception &error) {
        std::cout << error.what() << ' ' << sum << '\n';
    }
    try {
        volatile std::size_t huge = std::size_t(1) << 62;
        delete[] new char[huge];
    } catch (const std::bad_alloc &) {
        std::cout << "too much\n";
    }
}

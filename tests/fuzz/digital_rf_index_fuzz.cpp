// Any numbers as the index of a Digital RF file, any name as a file's: pieces that lie in the data
// and rise, or a UsageError of one line.
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "coordinator/sources/digital_rf_index.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using echelle::require;
    const std::string_view name(reinterpret_cast<const char*>(data), size);
    echelle::is_digital_rf_folder(name);
    echelle::digital_rf_file_time_ms(name);
    uint16_t rows = 0;
    if (size < sizeof rows) {
        return 0;
    }
    std::memcpy(&rows, data, sizeof rows);
    std::vector<echelle::DigitalRfIndexRow> index((size - sizeof rows) /
                                                  sizeof(echelle::DigitalRfIndexRow));
    if (!index.empty()) {
        std::memcpy(index.data(), data + sizeof rows, index.size() * sizeof index[0]);
    }
    echelle::refused_in_one_line([&] {
        echelle::PieceList list("fuzz");
        echelle::append_digital_rf_file(index, rows, 0, "rf.h5", list);
        echelle::append_digital_rf_file(index, rows, 1, "rf.h5", list);
        uint64_t position = 0;
        for (const echelle::SamplePiece& piece : list.take()) {
            require(piece.samples > 0 && piece.offset + piece.samples <= rows);
            position += piece.samples_missing + piece.samples;
            require(position < uint64_t{1} << 63);
        }
    });
    return 0;
}

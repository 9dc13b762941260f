// Hears which driver calls fail while a rank goes on, and which of its calls the communicator gives
// up. So it knows of which failure no other rank could be told: that of a copy of the finished
// result.
#pragma once

#include "test/seeds/world.h"

#include <cstdint>
#include <map>

namespace hetcoll::test {

// One at a time: the driver and the log know no object.
class Witness {
public:
    Witness();
    ~Witness();
    Witness(const Witness &) = delete;
    Witness &operator=(const Witness &) = delete;

    // Whatever happens from now on that rank does in that communicator; until look_away().
    void look_at(Rank &rank, int communicator, Communicator &comm);
    void look_away() { comm_ = nullptr; }
    // As hetcoll_settings::log.
    static void hear_line(int level, const char *line);

private:
    // When a copy has failed last: in which call of the communicator, after how many meetings.
    struct Moment {
        std::uint32_t calls, meetings;
        bool operator==(const Moment &) const = default;
    };

    static void hear_failure(const char *call, int code);
    [[nodiscard]] Moment now() const;
    void note_end();

    Rank *rank_ = nullptr;
    int communicator_ = 0;
    Communicator *comm_ = nullptr; // null: nobody goes on
    std::map<const Communicator *, Moment> failed_copies_;
};

} // namespace hetcoll::test

#include "bench/report.h"

#include "measure/json_document.h"

#include <cstdio>

namespace hetcoll {

namespace {

std::string check_text(const TimedCall &timed)
{
    if (!timed.verdict) {
        return "-";
    }
    if (timed.verdict->wrong != 0) {
        return std::to_string(timed.verdict->wrong) + " wrong";
    }
    return timed.verdict->same_bits ? "ok" : "ranks differ";
}

double busbw_gbs(const Row &row, const TimedCall &timed)
{
    return row.bus_factor * algorithm_bandwidth_gbs(row.bytes, timed.time.median_us);
}

double ratio(const Measured &measured)
{
    return measured.host_copy->time.median_us / measured.call.time.median_us;
}

Json to_json(const TimedCall &timed, const Row &row)
{
    Json json = {
        {"min_us", timed.time.min_us},
        {"median_us", timed.time.median_us},
        {"p90_us", timed.time.p90_us},
        {"p99_us", timed.time.p99_us},
        {"algbw_gbs", algorithm_bandwidth_gbs(row.bytes, timed.time.median_us)},
        {"busbw_gbs", busbw_gbs(row, timed)},
    };
    if (timed.verdict) {
        json["wrong"] = timed.verdict->wrong;
        json["same_bits"] = timed.verdict->same_bits;
    }
    return json;
}

} // namespace

void print_facts(const Facts &facts, const TableStyle &style)
{
    for (const auto &[key, value] : facts) {
        std::fprintf(style.to, "# %-13s %s\n", key.c_str(), value.c_str());
    }
}

void print_heading(const TableStyle &style)
{
    if (style.host_copy) {
        std::fprintf(style.to,
                     "#%101s | copied to pageable host memory, reduced there, copied back\n", "");
    }
    if (style.asked) {
        std::fprintf(style.to, "#%-23s ", "way");
    }
    std::fprintf(style.to, "#%10s %10s %-18s %-7s %9s %9s %9s %7s %7s %6s", "size", "count",
                 "algorithm", "path", "min", "median", "p99", "algbw", "busbw", "check");
    if (style.host_copy) {
        std::fprintf(style.to, " | %9s %9s %7s %7s %6s  %s", "median", "p99", "algbw", "busbw",
                     "check", style.emulated ? "ratio (no GPU speed)" : "ratio");
    }
    if (style.both) {
        std::fprintf(style.to, " | %9s %9s %7s %7s %6s", "in place", "p99", "algbw", "busbw",
                     "check");
    }
    if (style.floor) {
        std::fprintf(style.to, " | %9s %9s", "launch", "kernel");
    }
    std::fprintf(style.to, "\n");
    if (style.asked) {
        std::fprintf(style.to, "#%-23s ", "");
    }
    std::fprintf(style.to, "#%10s %10s %-18s %-7s %9s %9s %9s %7s %7s %6s", "(B)", "(elements)", "",
                 "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
    if (style.host_copy) {
        std::fprintf(style.to, " | %9s %9s %7s %7s %6s", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
    }
    if (style.both) {
        std::fprintf(style.to, " | %9s %9s %7s %7s %6s", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
    }
    if (style.floor) {
        std::fprintf(style.to, " | %9s %9s", "(us)", "(us)");
    }
    std::fprintf(style.to, "\n");
    std::fflush(style.to);
}

void print_row(const TableStyle &style, const Row &row)
{
    const TimedCall &call = row.measured.call;
    if (style.asked) {
        std::fprintf(style.to, "%-24s ", row.asked.c_str());
    }
    std::fprintf(style.to, "%11zu %10zu %-18s %-7s %9.1f %9.1f %9.1f %7.3f %7.3f %6s", row.bytes,
                 row.count, row.measured.route.algorithm.c_str(), row.measured.route.path.c_str(),
                 call.time.min_us, call.time.median_us, call.time.p99_us,
                 algorithm_bandwidth_gbs(row.bytes, call.time.median_us), busbw_gbs(row, call),
                 check_text(call).c_str());
    if (row.measured.host_copy) {
        const TimedCall &copy = *row.measured.host_copy;
        std::fprintf(style.to, " | %9.1f %9.1f %7.3f %7.3f %6s  %5.2f", copy.time.median_us,
                     copy.time.p99_us, algorithm_bandwidth_gbs(row.bytes, copy.time.median_us),
                     busbw_gbs(row, copy), check_text(copy).c_str(), ratio(row.measured));
    }
    if (style.both && row.in_place) {
        const TimedCall &place = row.in_place->call;
        std::fprintf(style.to, " | %9.1f %9.1f %7.3f %7.3f %6s", place.time.median_us,
                     place.time.p99_us, algorithm_bandwidth_gbs(row.bytes, place.time.median_us),
                     busbw_gbs(row, place), check_text(place).c_str());
    }
    if (row.floor) {
        std::fprintf(style.to, " | %9.1f %9.1f", row.floor->launch_us, row.floor->kernel_us);
    }
    std::fprintf(style.to, "\n");
    std::fflush(style.to);
}

void print_average(const TableStyle &style, const std::vector<Row> &rows)
{
    double sum = 0;
    int count = 0;
    for (const Row &row : rows) {
        sum += busbw_gbs(row, row.measured.call);
        ++count;
        if (row.in_place) {
            sum += busbw_gbs(row, row.in_place->call);
            ++count;
        }
    }
    std::fprintf(style.to, "# Avg bus bandwidth    : %.4f\n", sum / count);
}

std::string print_json(const Facts &facts, const TableStyle &style, const std::vector<Row> &rows)
{
    Json json = json_document("hetcoll_bench");
    for (const auto &[key, value] : facts) {
        json[key] = value;
    }
    json["results"] = Json::array();
    for (const Row &row : rows) {
        Json result = to_json(row.measured.call, row);
        if (!row.section.empty()) {
            result["section"] = row.section;
        }
        if (!row.asked.empty()) {
            result["asked"] = row.asked;
        }
        result["collective"] = row.collective;
        result["bytes"] = row.bytes;
        result["count"] = row.count;
        result["algorithm"] = row.measured.route.algorithm;
        result["path"] = row.measured.route.path;
        if (row.floor) {
            result["floor_launch_us"] = row.floor->launch_us;
            result["floor_kernel_us"] = row.floor->kernel_us;
        }
        if (row.in_place) {
            result["in_place"] = to_json(row.in_place->call, row);
        }
        if (row.measured.host_copy) {
            result["host_copy"] = to_json(*row.measured.host_copy, row);
            result["ratio"] = ratio(row.measured);
            result["ratio_is_gpu_speed"] = !style.emulated;
        }
        json["results"].push_back(result);
    }
    return json_text(json);
}

} // namespace hetcoll

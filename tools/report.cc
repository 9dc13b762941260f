#include "tools/report.h"

#include "hetcoll_config.h"

#include "measure/sizes.h"
#include "tools/report_parts.h"
#include "topology/print.h"

#include <string_view>
#include <utility>

namespace hetcoll {
namespace {

// Files of tools/report/, which the build makes strings of.
constexpr std::string_view kPage =
#include "tools/report/frame.inc"
    ;
constexpr std::string_view kStyle =
#include "tools/report/style.inc"
    ;
constexpr std::string_view kScripts[] = {
#include "tools/report/lookup.inc"
    ,
#include "tools/report/call.inc"
    ,
#include "tools/report/charts.inc"
    ,
#include "tools/report/page.inc"
};

// JSON in a <script>: a browser looks for "</" and "<!--" there.
std::string in_script(const Json &json)
{
    std::string safe;
    for (const char c : json.line()) {
        if (c == '<') {
            safe += "\\u003c";
        } else {
            safe += c;
        }
    }
    return safe;
}

// Requires that the page has the place.
void put(std::string &page, std::string_view place, std::string_view text)
{
    page.replace(page.find(place), place.size(), text);
}

Result<Json> data_of(const ReportInput &input)
{
    const Table *const table = input.table.table ? &*input.table.table : nullptr;
    Json data = {{"version", HETCOLL_VERSION},
                 {"smallLimit", input.small_limit},
                 {"usualSmallLimit", hetcoll_default_settings().small_limit},
                 {"mostBytes", kLargestSize},
                 {"algorithms", Json::array()},
                 {"machine", Json()},
                 {"topology", Json()},
                 {"table", Json()},
                 {"setups", Json::array()},
                 {"measurements", Json::array()},
                 {"job", Json()}};
    for (const AlgorithmRow &row : kAlgorithmRows) {
        data["algorithms"].push_back(row.name);
    }
    if (input.topology != nullptr && !input.topology->gpus().empty()) {
        data["machine"] = report_machine(*input.topology);
        data["topology"] = input.topology_name;
        if (Status status = report_answers(input, data); !status.ok()) {
            return status;
        }
    }
    if (input.file != nullptr) {
        data["table"] = {{"path", input.file->path},
                         {"machine", table != nullptr ? Json(table->machine()) : Json()},
                         {"asked", input.machine}};
    }
    for (const Measurements &measurements : input.measurements) {
        data["measurements"].push_back(report_measurements(measurements, table));
    }
    if (input.job != nullptr) {
        data["job"] = report_job(*input.job);
    }
    return data;
}

} // namespace

Result<std::string> print_report(const ReportInput &input)
{
    Result<Json> data = data_of(input);
    if (!data.ok()) {
        return data.take_status();
    }
    std::string script;
    for (const std::string_view part : kScripts) {
        script += part;
    }
    std::string page(kPage);
    put(page, "<!-- style -->", kStyle);
    put(page, "<!-- picture -->",
        (*data)["machine"].is_null() ? std::string() : print_svg(*input.topology));
    put(page, "<!-- data -->", in_script(*data));
    put(page, "<!-- script -->", script);
    if (page.size() > kMostReportBytes) {
        return error(Errc::kInvalid,
                     "the page would have %zu bytes, more than the %zu that a page may have: %s",
                     page.size(), kMostReportBytes,
                     input.measurements.empty() ? "name fewer GPUs, as in --topology FILE:0-7"
                                                : "give fewer --measurements");
    }
    return page;
}

} // namespace hetcoll

// The lines of Open MPI's ompi_info --parsable --all, and those printed among them when components
// are looked for. They are of one rank, or of several whose lines are mixed.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hetcoll {

class OmpiInfo {
public:
    void add_line(const std::string &line);

    // "option:dlopen", "ompi:version:full", "path:pkglibdir"; "" if it does not say it.
    [[nodiscard]] std::string fact(const std::string &key) const;
    // "mca_base_component_path"; "" too if there is no such parameter.
    [[nodiscard]] std::string parameter(const std::string &name) const;
    [[nodiscard]] std::string source(const std::string &name) const; // "environment"
    // The release that the component says it is built for; "" if it was not found.
    [[nodiscard]] std::string component(const std::string &framework,
                                        const std::string &name) const;
    // Which components take MPI_Allreduce before hetcoll, the first one first: "tuned has 30", "han
    // has 99 (by environment)".
    [[nodiscard]] std::vector<std::string> above_hetcoll() const;
    // Where jobs read parameters, too. A setting of an earlier file counts, and what the first one
    // sets counts before the environment; its name may be empty.
    [[nodiscard]] std::vector<std::string> parameter_files() const;
    // How many ranks have found coll's hetcoll.
    [[nodiscard]] int ranks_with_hetcoll() const noexcept { return with_hetcoll_; }
    // How many have spoken.
    [[nodiscard]] int ranks() const noexcept { return ranks_; }
    // Why hetcoll steps aside or cannot be loaded, as a rank said; "" if none did.
    [[nodiscard]] const std::string &complaint() const noexcept { return complaint_; }
    // Where components are looked for.
    [[nodiscard]] std::vector<std::string> searched() const;

private:
    std::map<std::string, std::string> lines_; // up to the last colon outside of quotes; the rest
    std::string complaint_;
    int ranks_ = 0, with_hetcoll_ = 0;
};

} // namespace hetcoll

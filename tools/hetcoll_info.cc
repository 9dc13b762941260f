// hetcoll_info: what hetcoll knows about machines and calls. Each thing it shows has a file of its
// own here: add_X_options() and show_X().
#include "tools/info_topology.h"

#include <CLI/CLI.hpp>

#include <cstdio>

int main(int argc, char **argv)
{
    using namespace hetcoll;
    CLI::App app{"Shows what hetcoll knows about a machine."};
    TopologyRequest topology;
    add_topology_options(app, topology);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &problem) {
        return app.exit(problem);
    }
    topology.wanted = app.count("--topology") > 0;
    if (!topology.wanted) {
        std::fprintf(stderr, "hetcoll_info: nothing to show, write --topology or look at --help\n");
        return 2;
    }
    const Result<std::string> text = show_topology(topology);
    if (!text.ok()) {
        std::fprintf(stderr, "hetcoll_info: %s\n", text.status().message().c_str());
        return 1;
    }
    std::fputs(text->c_str(), stdout);
    return 0;
}

#include "tools/place_file.h"

#include "topology/file.h"
#include "topology/route.h"
#include "tuning/json_walk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

namespace hetcoll {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

// Walks the tree; the first fault ends it.
class PlaceFileReader : JsonWalk {
public:
    PlaceFileReader(const std::string &path, const std::string &shipped_folder)
        : path_(path), shipped_folder_(shipped_folder)
    {
    }

    Result<MixedCluster> read(const JsonNode &root)
    {
        if (!is(Kind::kObject, root, "the file") || !has_format(root) ||
            !is_object_of({"format", "gpus", "nodes", "model"}, root, "the file") ||
            !read_types(root) || !read_nodes(root) || !read_model(root)) {
            return error(Errc::kInvalid, "%s:%d: %s", path_.c_str(), line_, cause_.c_str());
        }
        return std::move(cluster_);
    }

private:
    const JsonNode *need(const JsonNode &object, const char *key, const char *what)
    {
        const JsonNode *const node = find_member(object, key);
        if (node == nullptr) {
            fail(object.line, std::string(what) + " has no " + quoted(key));
        }
        return node;
    }
    // From `least` on; left alone if the key is not there.
    bool number(const JsonNode &object, const char *key, double least, double *value)
    {
        const JsonNode *const node = find_member(object, key);
        if (node == nullptr) {
            return true;
        }
        if (node->kind != Kind::kInteger && node->kind != Kind::kReal) {
            return fail(node->line,
                        quoted(key) + " is " + kind_name(node->kind) + ", not a number");
        }
        if (!(node->real >= least && node->real <= 1e12)) {
            return fail(node->line, quoted(key) + " is " + std::to_string(node->real) + ", give " +
                                        (least > 0 ? "more than 0" : "0 or more") +
                                        ", at most 1e12");
        }
        *value = node->real;
        return true;
    }
    bool whole(const JsonNode &object, const char *key, int least, int *value)
    {
        const JsonNode *const node = find_member(object, key);
        if (node == nullptr) {
            return true;
        }
        if (!is(Kind::kInteger, *node, quoted(key))) {
            return false;
        }
        if (node->integer < least || node->integer > 1000000) {
            return fail(node->line, quoted(key) + " is " + std::to_string(node->integer) +
                                        ", give " + std::to_string(least) + " to 1000000");
        }
        *value = static_cast<int>(node->integer);
        return true;
    }

    bool has_format(const JsonNode &root)
    {
        const JsonNode *const format = find_member(root, "format");
        return (format != nullptr && format->string == "hetcoll placement 1") ||
               fail(format != nullptr ? format->line : root.line,
                    "'format' must be \"hetcoll placement 1\"");
    }
    bool read_types(const JsonNode &root);
    bool read_nodes(const JsonNode &root);
    bool read_node(const JsonNode &node);
    bool read_topology(const JsonNode &name, MixedNode &made);
    bool read_model(const JsonNode &root);

    const std::string &path_, &shipped_folder_;
    MixedCluster cluster_;
    int gpus_ = 0;
};

constexpr double kAboveZero = 1e-9;

bool PlaceFileReader::read_types(const JsonNode &root)
{
    const JsonNode *const types = need(root, "gpus", "the file");
    if (types == nullptr || !is(Kind::kObject, *types, "'gpus'")) {
        return false;
    }
    for (std::size_t i = 0; i < types->keys.size(); ++i) {
        const JsonNode &node = types->items[i];
        GpuType type{types->keys[i], types->keys[i], 0, 0};
        if (!is(Kind::kObject, node, quoted(type.name)) ||
            !is_object_of({"model", "samples_per_s", "memory_gb"}, node, "a type of GPU") ||
            need(node, "samples_per_s", "a type of GPU") == nullptr ||
            need(node, "memory_gb", "a type of GPU") == nullptr ||
            !number(node, "samples_per_s", kAboveZero, &type.samples_per_s) ||
            !number(node, "memory_gb", kAboveZero, &type.memory_mb)) {
            return false;
        }
        type.memory_mb *= 1000;
        if (const JsonNode *const model = find_member(node, "model"); model != nullptr) {
            if (!is(Kind::kString, *model, "'model'")) {
                return false;
            }
            type.model = model->string;
        }
        cluster_.types.push_back(std::move(type));
    }
    return true;
}

bool PlaceFileReader::read_nodes(const JsonNode &root)
{
    const JsonNode *const nodes = need(root, "nodes", "the file");
    if (nodes == nullptr || !is(Kind::kArray, *nodes, "'nodes'")) {
        return false;
    }
    if (nodes->items.empty()) {
        return fail(nodes->line, "'nodes' is empty");
    }
    return std::all_of(nodes->items.begin(), nodes->items.end(),
                       [this](const JsonNode &node) { return read_node(node); });
}

bool PlaceFileReader::read_node(const JsonNode &node)
{
    if (!is_object_of({"name", "gpus", "cores", "network_gbps", "link_gbps", "topology"}, node,
                      "a node")) {
        return false;
    }
    const JsonNode *const name = need(node, "name", "a node");
    const JsonNode *const gpus = need(node, "gpus", "a node");
    MixedNode made;
    if (name == nullptr || gpus == nullptr || !is(Kind::kString, *name, "'name'") ||
        !is(Kind::kArray, *gpus, "'gpus' of a node") || !whole(node, "cores", 1, &made.cores) ||
        !number(node, "network_gbps", 0, &made.network_gbps) ||
        !number(node, "link_gbps", 0, &made.link_gbps)) {
        return false;
    }
    made.name = name->string;
    if (!is_word(made.name)) {
        return fail(name->line, "the node's name " + quoted(made.name) +
                                    " is not a host name: letters, digits and _ . : + - only");
    }
    for (const MixedNode &other : cluster_.nodes) {
        if (other.name == made.name) {
            return fail(name->line, "there are two nodes " + quoted(made.name));
        }
    }
    for (const JsonNode &gpu : gpus->items) {
        const auto known =
            std::find_if(cluster_.types.begin(), cluster_.types.end(),
                         [&](const GpuType &type) { return type.name == gpu.string; });
        if (gpu.kind != Kind::kString || known == cluster_.types.end()) {
            return fail(gpu.line,
                        "a GPU of node " + quoted(made.name) + " is " +
                            (gpu.kind == Kind::kString ? quoted(gpu.string) : kind_name(gpu.kind)) +
                            ", not one of the types in 'gpus' of the file");
        }
        made.gpus.push_back(static_cast<int>(known - cluster_.types.begin()));
    }
    gpus_ += static_cast<int>(made.gpus.size());
    if (made.gpus.empty() || gpus_ > kMaxMixedGpus) {
        return fail(gpus->line, made.gpus.empty()
                                    ? "node " + quoted(made.name) + " has no GPU"
                                    : "more than " + std::to_string(kMaxMixedGpus) + " GPUs");
    }
    if (made.cores > 0 && made.cores < static_cast<int>(made.gpus.size())) {
        return fail(find_member(node, "cores")->line,
                    "node " + quoted(made.name) + " has " + std::to_string(made.cores) +
                        " cores for " + std::to_string(made.gpus.size()) +
                        " GPUs: there is a rank per GPU, and each needs a core of its own");
    }
    const JsonNode *const topology = find_member(node, "topology");
    if (topology != nullptr && !read_topology(*topology, made)) {
        return false;
    }
    cluster_.nodes.push_back(std::move(made));
    return true;
}

// The slowest way between two GPUs of the node, and all its ways to the network together.
bool PlaceFileReader::read_topology(const JsonNode &name, MixedNode &made)
{
    if (!is(Kind::kString, name, "'topology'")) {
        return false;
    }
    Result<Topology> topology = hetcoll::read_topology(name.string, shipped_folder_);
    if (!topology.ok()) {
        return fail(name.line, topology.status().message());
    }
    const std::size_t gpus = topology->gpus().size();
    if (gpus != made.gpus.size()) {
        return fail(name.line, "topology " + quoted(name.string) + " has " + std::to_string(gpus) +
                                   " GPUs and node " + quoted(made.name) + " " +
                                   std::to_string(made.gpus.size()) + ": name some, as FILE:0,1");
    }
    if (made.link_gbps == 0) {
        std::vector<int> all(gpus);
        std::iota(all.begin(), all.end(), 0);
        made.link_gbps = slowest_gbps(*topology, all);
    }
    if (made.network_gbps == 0) {
        for (const Link &link : topology->links) {
            made.network_gbps += link.kind == LinkKind::kNetwork ? link.total_gbps() : 0;
        }
    }
    return true;
}

bool PlaceFileReader::read_model(const JsonNode &root)
{
    const JsonNode *const node = need(root, "model", "the file");
    TrainedModel &model = cluster_.model;
    if (node == nullptr ||
        !is_object_of({"parameters_mb", "state_mb", "activations_mb", "boundary_mb", "batch"},
                      *node, "'model'") ||
        need(*node, "parameters_mb", "'model'") == nullptr ||
        !number(*node, "parameters_mb", kAboveZero, &model.parameters_mb)) {
        return false;
    }
    model.state_mb = 3 * model.parameters_mb; // weights, gradients, momentum
    return number(*node, "state_mb", 0, &model.state_mb) &&
           number(*node, "activations_mb", 0, &model.activations_mb) &&
           number(*node, "boundary_mb", 0, &model.boundary_mb) &&
           whole(*node, "batch", 1, &model.batch);
}

} // namespace

Result<MixedCluster> parse_place_file(std::string_view text, const std::string &path,
                                      const std::string &shipped_folder)
{
    JsonNode root;
    JsonError fault{};
    if (!read_json(text, &root, &fault)) {
        return error(Errc::kInvalid, "%s:%d: %s", path.c_str(), fault.line, fault.cause.c_str());
    }
    return PlaceFileReader(path, shipped_folder).read(root);
}

Result<MixedCluster> read_place_file(const std::string &path, const std::string &shipped_folder)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return error(Errc::kInvalid, "%s cannot be opened: %s", path.c_str(), std::strerror(errno));
    }
    std::string text(kMaxFileBytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (file.bad() || text.empty() || text.size() > kMaxFileBytes) {
        return error(
            Errc::kInvalid,
            "%s is not a placement file: it cannot be read, is empty, or is larger than 16 MiB",
            path.c_str());
    }
    return parse_place_file(text, path, shipped_folder);
}

} // namespace hetcoll

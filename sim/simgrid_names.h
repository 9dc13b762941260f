// What SimGrid 3.32, 4.0 and 4.1 call differently, in one place: a platform is made by these,
// actors begin and wait by them. Only simgrid_run.cc includes this.
#pragma once

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll::simgrid_names {

namespace sg = simgrid::s4u;

using NetPoint = simgrid::kernel::routing::NetPoint;
using Route = std::vector<sg::LinkInRoute>;

// A zone in another one, or the outermost if `around` is null.
[[nodiscard]] inline sg::NetZone *add_star(const sg::Engine &engine, sg::NetZone *around,
                                           const std::string &name)
{
#if SIMGRID_VERSION_MAJOR < 4
    static_cast<void>(engine);
    sg::NetZone *zone = sg::create_star_zone(name);
    return around == nullptr ? zone : zone->set_parent(around);
#else
    return (around == nullptr ? engine.get_netzone_root() : around)->add_netzone_star(name);
#endif
}

[[nodiscard]] inline sg::NetZone *add_full(sg::NetZone *around, const std::string &name)
{
#if SIMGRID_VERSION_MAJOR < 4
    return sg::create_full_zone(name)->set_parent(around);
#else
    return around->add_netzone_full(name);
#endif
}

[[nodiscard]] inline NetPoint *add_router(sg::NetZone *zone, const std::string &name)
{
#if SIMGRID_VERSION_MAJOR < 4
    return zone->create_router(name);
#else
    return zone->add_router(name);
#endif
}

[[nodiscard]] inline sg::Host *add_host(sg::NetZone *zone, const std::string &name, double speed)
{
#if SIMGRID_VERSION_MAJOR < 4
    return zone->create_host(name, speed);
#else
    return zone->add_host(name, speed);
#endif
}

[[nodiscard]] inline sg::Link *add_link(sg::NetZone *zone, const std::string &name, double rate)
{
#if SIMGRID_VERSION_MAJOR < 4
    return zone->create_link(name, rate);
#else
    return zone->add_link(name, rate);
#endif
}

// From one point to another, both of `zone`.
inline void add_route(sg::NetZone *zone, NetPoint *from, NetPoint *to, const Route &route)
{
#if SIMGRID_VERSION_MAJOR < 4
    zone->add_route(from, to, nullptr, nullptr, route, false);
#else
    zone->add_route(from, to, route, false);
#endif
}

// From a zone of a star to its middle, and back. The gateway is a router of the zone or of one in
// it. Before the zone is sealed.
inline void connect(sg::NetZone *star, sg::NetZone *zone, NetPoint *gateway, const Route &out,
                    const Route &in)
{
#if SIMGRID_VERSION_MAJOR < 4
    star->add_route(zone->get_netpoint(), nullptr, gateway, nullptr, out, false);
    star->add_route(nullptr, zone->get_netpoint(), nullptr, gateway, in, false);
#else
    zone->set_gateway(gateway);
    const sg::NetZone *const middle = nullptr;
    star->add_route(zone, middle, out, false);
    star->add_route(middle, zone, in, false);
#endif
}

// The router by which one leaves a star whose members are zones. Before 4.1 it is in a zone of its
// own, as a router next to zones silently makes routes that lack links; from 4.1 on it must be the
// star's own, as routes descend by the zones around a host alone.
[[nodiscard]] inline NetPoint *add_gateway(sg::NetZone *star, const std::string &name)
{
#if SIMGRID_VERSION_MAJOR < 4 || (SIMGRID_VERSION_MAJOR == 4 && SIMGRID_VERSION_MINOR < 1)
    sg::NetZone *middle = add_full(star, name + ".switch");
    NetPoint *gateway = add_router(middle, name + ".gateway");
    connect(star, middle, gateway, Route{}, Route{});
    middle->seal();
    return gateway;
#else
    return add_router(star, name + ".gateway");
#endif
}

template <class Body> void add_actor(sg::Host *host, const std::string &name, Body body)
{
#if SIMGRID_VERSION_MAJOR < 4
    sg::Actor::create(name, host, std::move(body));
#elif SIMGRID_VERSION_MINOR < 1
    sg::Engine::add_actor(name, host, std::function<void()>(std::move(body)));
#else
    host->add_actor(name, std::function<void()>(std::move(body)));
#endif
}

// The index of one that has ended; waits until one has.
[[nodiscard]] inline std::size_t wait_any(const std::vector<sg::ActivityPtr> &running)
{
#if SIMGRID_VERSION_MAJOR < 4 && SIMGRID_VERSION_MINOR < 35
    return static_cast<std::size_t>(sg::Activity::wait_any(running));
#else
    const sg::ActivityPtr ended = sg::ActivitySet(running).wait_any();
    return static_cast<std::size_t>(std::find(running.begin(), running.end(), ended) -
                                    running.begin());
#endif
}

} // namespace hetcoll::simgrid_names

// Which loaded object asks for memory: tests let that of one object run out.
#pragma once

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hetcoll::test {

// Where a loaded object lies whose file has that in its name.
class LoadedObject {
public:
    constexpr explicit LoadedObject(const char *name) : name_(name) {}
    void find() noexcept
    {
        begin_ = end_ = 0;
        dl_iterate_phdr(look_at, this);
    }
    [[nodiscard]] bool has(std::uintptr_t code) const noexcept
    {
        return begin_ <= code && code < end_;
    }

private:
    static int look_at(dl_phdr_info *info, std::size_t, void *to) noexcept
    {
        auto *const object = static_cast<LoadedObject *>(to);
        if (std::string_view(info->dlpi_name).find(object->name_) == std::string_view::npos) {
            return 0;
        }
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto &part = info->dlpi_phdr[i];
            const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
            if (part.p_type == PT_LOAD) {
                object->begin_ = object->end_ == 0 ? begin : std::min(object->begin_, begin);
                object->end_ = std::max(object->end_, begin + part.p_memsz);
            }
        }
        return 0;
    }

    const char *name_;
    std::uintptr_t begin_ = 0, end_ = 0;
};

// Matches an object and the C++ library, which allocates for it.
class CallingObject {
public:
    constexpr explicit CallingObject(const char *name) : object_(name) {}
    // Before called(), whenever it may have been loaded since.
    void find() noexcept
    {
        object_.find();
        library_.find();
        Search nothing{library_, 0};
        _Unwind_Backtrace(look_at_frame, &nothing); // the first one allocates
    }
    // `caller` is in who called a function that allocates.
    [[nodiscard]] bool called(const void *caller) const noexcept
    {
        const auto code = reinterpret_cast<std::uintptr_t>(caller);
        if (!library_.has(code)) {
            return object_.has(code);
        }
        Search search{library_, code};
        _Unwind_Backtrace(look_at_frame, &search);
        return object_.has(search.found);
    }

private:
    // The first frame from `from` on that is not in the library.
    struct Search {
        const LoadedObject &library;
        std::uintptr_t from, found = 0;
        bool begun = false;
    };
    static _Unwind_Reason_Code look_at_frame(_Unwind_Context *frame, void *to) noexcept
    {
        auto *const search = static_cast<Search *>(to);
        const std::uintptr_t code = _Unwind_GetIP(frame);
        search->begun = search->begun || code == search->from;
        if (!search->begun || search->library.has(code)) {
            return _URC_NO_REASON;
        }
        search->found = code;
        return _URC_END_OF_STACK;
    }

    LoadedObject object_, library_{"libstdc++"};
};

} // namespace hetcoll::test

// SPDX-License-Identifier: Apache-2.0
//
// Sign in guests, and players of a game platform, with Gatehouse; give guests an account. Copy this file into your game
// together with gatehouse_login.hpp. It needs libsodium: link with -lsodium, and call sodium_init once.
//
//     const gatehouse::DeviceKey key = gatehouse::new_device_key();  // once on each device; only the player may read it
//     gatehouse::Result result = gatehouse::sign_in_guest("https://sso.studio.example", key, options);

#ifndef GATEHOUSE_GUEST_HPP
#define GATEHOUSE_GUEST_HPP

#include <sodium.h>

#include <array>

#include "gatehouse_login.hpp"

namespace gatehouse {

using DeviceKey = std::array<unsigned char, crypto_sign_SEEDBYTES>;

namespace detail {

constexpr char guest_path[] = "/proxy/api/guest";
constexpr char platform_path[] = "/proxy/api/platformLogin";
constexpr char login_path[] = "/proxy/api/login";
constexpr long most_parts = 64;  // of a puzzle
constexpr long most_bits = 31;

inline std::string base64(const unsigned char* bytes, std::size_t size) {
    constexpr int form = sodium_base64_VARIANT_ORIGINAL;
    std::string text(sodium_base64_encoded_len(size, form), '\0');
    sodium_bin2base64(text.data(), text.size(), bytes, size, form);
    text.pop_back();  // its end mark
    return text;
}

class KeyPair {
public:
    explicit KeyPair(const DeviceKey& seed) { crypto_sign_seed_keypair(public_.data(), secret_.data(), seed.data()); }
    KeyPair(const KeyPair&) = delete;
    KeyPair& operator=(const KeyPair&) = delete;
    ~KeyPair() { sodium_memzero(secret_.data(), secret_.size()); }

    std::string public_text() const { return base64(public_.data(), public_.size()); }

    // The fields that prove the key.
    std::string sign(const std::string& challenge) const {
        std::array<unsigned char, crypto_sign_BYTES> signature;
        const auto* message = reinterpret_cast<const unsigned char*>(challenge.data());
        crypto_sign_detached(signature.data(), nullptr, message, challenge.size(), secret_.data());
        return ",\"device_key\":" + json_string(public_text()) + ",\"challenge\":" + json_string(challenge) +
               ",\"signature\":" + json_string(base64(signature.data(), signature.size()));
    }

private:
    std::array<unsigned char, crypto_sign_PUBLICKEYBYTES> public_;
    std::array<unsigned char, crypto_sign_SECRETKEYBYTES> secret_;
};

using Digest = std::array<unsigned char, crypto_hash_sha256_BYTES>;

inline bool solves(const Digest& seed, unsigned char part, std::uint32_t number, long bits) {
    std::array<unsigned char, 37> input;
    std::copy(seed.begin(), seed.end(), input.begin());
    input[32] = part;
    for (unsigned at = 0; at < 4; ++at) input[33 + at] = static_cast<unsigned char>(number >> (24 - 8 * at));
    Digest digest;
    crypto_hash_sha256(digest.data(), input.data(), input.size());
    std::uint32_t head = 0;
    for (unsigned at = 0; at < 4; ++at) head = head << 8 | digest[at];
    return bits == 0 || head >> (32 - bits) == 0;
}

// The fields with the solution, if there is a puzzle. A game that cancels gets a wrong one.
inline std::string solved(const Answer& answer, const Client& client) {
    const auto told = answer.members.find("puzzle");
    if (told == answer.members.end() || told->second.kind != Value::Kind::object) return "";
    const Object puzzle = Json::object(told->second.text).value_or(Object{});
    const std::string text = text_of(puzzle, "puzzle");
    const auto parts = time_of(puzzle, "parts"), bits = time_of(puzzle, "difficulty");
    Digest seed;
    crypto_hash_sha256(seed.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
    std::string solution;
    for (long part = 0; part < parts && parts <= most_parts && bits <= most_bits; ++part) {
        std::uint32_t number = 0;
        while (!solves(seed, static_cast<unsigned char>(part), number, static_cast<long>(bits))) {
            if (client.is_cancelled()) return "";
            ++number;
        }
        solution += (part == 0 ? "" : ".") + std::to_string(number);
    }
    return ",\"puzzle\":" + json_string(text) + ",\"solution\":" + json_string(solution);
}

inline std::string reason_of(const std::string& status) {
    if (status == "2STEP") return "second_factor";
    if (status == "2STEPERROR") return "wrong_code";
    if (status == "TERMS") return "terms";
    if (status == "BLOCKED") return "throttled";
    if (status == "LOGINERROR") return "login_error";
    return status == "DENIED" ? "denied" : "";
}

// The answer of a login without a browser.
inline Result logged_in(const Answer& answer) {
    const std::string status = text_of(answer.members, "status"), reason = reason_of(status);
    if (answer.cancelled) return Client::cancelled();
    if (answer.http == 200 && status == "OK") return Client::signed_in(answer);
    if (answer.http < 200 || answer.http >= 500 || (answer.http == 200 && reason.empty())) return Client::unreachable(answer);
    Result result = Client::refused(answer);
    result.url = text_of(answer.members, "url");
    result.request_id = text_of(answer.members, "request_id");
    result.body = answer.body;
    if (result.reason.empty()) result.reason = answer.http == 429 ? "throttled" : reason;
    return result;
}

}  // namespace detail

// Makes the key of a guest. Store it where only the player can read it: it is the account.
inline DeviceKey new_device_key() {
    DeviceKey key;
    randombytes_buf(key.data(), key.size());
    return key;
}

// Signs in without an account. The same key finds the same guest again.
inline Result sign_in_guest(const std::string& base_url, const DeviceKey& device_key, const Options& options = {}) {
    detail::Client client{base_url, options};
    const detail::KeyPair key{device_key};
    const std::string app_id = "{\"app_id\":" + std::to_string(options.app_id);
    const std::string asked = app_id + ",\"device_key\":" + detail::json_string(key.public_text()) + "}";
    detail::Answer answer = client.post(detail::guest_path, asked);
    for (int attempt = 0; attempt < 2; ++attempt) {  // the first may be asked to solve a puzzle
        const std::string challenge = detail::text_of(answer.members, "challenge");
        if (challenge.empty()) break;
        const std::string proved = key.sign(challenge) + detail::solved(answer, client);
        client.restart_patience();
        answer = client.post(detail::guest_path, "{" + client.fields() + proved + "}");
    }
    return detail::logged_in(answer);
}

// Signs in with a ticket of the player's game platform, such as "steam".
inline Result sign_in_platform(const std::string& base_url, const std::string& platform, const std::string& ticket,
                               const Options& options = {}) {
    detail::Client client{base_url, options};
    const std::string proof = ",\"platform\":" + detail::json_string(platform) + ",\"ticket\":" + detail::json_string(ticket);
    return detail::logged_in(client.post(detail::platform_path, "{" + client.fields() + proof + "}"));
}

// Continues a sign-in that was refused with the reason "second_factor", with its request_id and the code that the player
// entered. With the method "email" and an empty code the service sends one.
inline Result enter_code(const std::string& base_url, const std::string& request_id, const std::string& otp,
                         const Options& options = {}, const std::string& method = "") {
    detail::Client client{base_url, options};
    std::string asked = "{\"request_id\":" + detail::json_string(request_id);
    if (!otp.empty()) asked += ",\"otp\":" + detail::json_string(otp);
    if (!method.empty()) asked += ",\"method\":" + detail::json_string(method);
    return detail::logged_in(client.post(detail::login_path, asked + "}"));
}

// Gives a guest an account, through the browser: the player registers, or signs in to the account that gets everything
// the guest has. Show the code of the session, the player has to pick it. Afterwards the key no longer works; delete it.
inline Result upgrade(const std::string& base_url, const DeviceKey& device_key, const Options& options = {}) {
    detail::Client client{base_url, options};
    const std::string app_id = "{\"app_id\":" + std::to_string(options.app_id);
    const detail::Answer answer = client.post(detail::guest_path, app_id + ",\"intent\":\"upgrade\"}");
    const std::string challenge = detail::text_of(answer.members, "challenge");
    if (challenge.empty()) return detail::logged_in(answer);
    const detail::KeyPair key{device_key};
    return detail::sign_in_with_browser(client, options, ",\"intent\":\"upgrade\"" + key.sign(challenge));
}

}  // namespace gatehouse

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Sign in guests, and players of a game platform, with Gatehouse; give guests an account. Copy this file into your game
// together with GatehouseLogin.cs and ../unity/Runtime/Ed25519.cs.
//
//     byte[] key = GatehouseLogin.NewDeviceKey(); // once on each device; store it where only the player can read it
//     GatehouseResult result = await GatehouseLogin.SignInGuestAsync("https://sso.studio.example", key, options);

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Gatehouse;

public static partial class GatehouseLogin
{
    private const string Guest = "/proxy/api/guest";
    private const string PlatformLogin = "/proxy/api/platformLogin";
    private const string Login = "/proxy/api/login";
    private const int KeyBytes = 32;
    private const double MostParts = 64; // of a puzzle
    private const double MostBits = 31;

    private static readonly Dictionary<string, string> Reasons = new Dictionary<string, string>
    {
        { "2STEP", "second_factor" },
        { "2STEPERROR", "wrong_code" },
        { "TERMS", "terms" },
        { "BLOCKED", "throttled" },
        { "LOGINERROR", "login_error" },
        { "DENIED", "denied" },
    };

    /// <summary>Makes the key of a guest. Store it where only the player can read it: it is the account.</summary>
    public static byte[] NewDeviceKey()
    {
        var key = new byte[KeyBytes];
        using (RandomNumberGenerator random = RandomNumberGenerator.Create())
        {
            random.GetBytes(key);
        }
        return key;
    }

    /// <summary>Signs in without an account. The same key finds the same guest again.</summary>
    public static async Task<GatehouseResult> SignInGuestAsync(
        string baseUrl, byte[] deviceKey, GatehouseOptions options,
        CancellationToken cancel = default(CancellationToken))
    {
        using (var client = new Client(baseUrl, options, cancel))
        {
            return await client.SignInGuest(deviceKey);
        }
    }

    /// <summary>Signs in with a ticket of the player's game platform, such as "steam".</summary>
    public static async Task<GatehouseResult> SignInPlatformAsync(
        string baseUrl, string platform, string ticket, GatehouseOptions options,
        CancellationToken cancel = default(CancellationToken))
    {
        using (var client = new Client(baseUrl, options, cancel))
        {
            return await client.SignInPlatform(platform, ticket);
        }
    }

    /// <summary>
    /// Continues a sign-in that was refused with the reason "second_factor", with its RequestId and the code that the player
    /// entered. With the method "email" and an empty code the service sends one.
    /// </summary>
    public static async Task<GatehouseResult> EnterCodeAsync(
        string baseUrl, string requestId, string otp, GatehouseOptions options, string method = "",
        CancellationToken cancel = default(CancellationToken))
    {
        using (var client = new Client(baseUrl, options, cancel))
        {
            return await client.EnterCode(requestId, otp, method);
        }
    }

    /// <summary>
    /// Gives a guest an account, through the browser: the player registers, or signs in to the account that gets everything
    /// the guest has. Show the code of the session, the player has to pick it. Afterwards the key no longer works; delete
    /// it.
    /// </summary>
    public static async Task<GatehouseResult> UpgradeAsync(
        string baseUrl, byte[] deviceKey, GatehouseOptions options,
        CancellationToken cancel = default(CancellationToken))
    {
        using (var client = new Client(baseUrl, options, cancel))
        {
            return await client.Upgrade(deviceKey);
        }
    }

    private sealed partial class Client
    {
        public async Task<GatehouseResult> SignInGuest(byte[] deviceKey)
        {
            byte[] publicKey = Ed25519.PublicKey(deviceKey);
            var asked = new Dictionary<string, object>
            {
                { "app_id", options.AppId },
                { "device_key", Convert.ToBase64String(publicKey) },
            };
            Answer answer = await Post(Guest, asked);
            for (int attempt = 0; attempt < 2 && answer.Text("challenge") != ""; attempt++) // there may be a puzzle
            {
                Dictionary<string, object> proved = Registration();
                Sign(deviceKey, publicKey, answer.Text("challenge"), proved);
                object puzzle;
                if (answer.Members.TryGetValue("puzzle", out puzzle) && puzzle is Dictionary<string, object>)
                {
                    var told = (Dictionary<string, object>)puzzle;
                    proved["puzzle"] = MemberOf(told, "puzzle") as string ?? "";
                    proved["solution"] = await Task.Run(() => Solution(told));
                    silence.Restart();
                }
                answer = await Post(Guest, proved);
            }
            return LoggedIn(answer);
        }

        public async Task<GatehouseResult> SignInPlatform(string platform, string ticket)
        {
            Dictionary<string, object> asked = Registration();
            asked["platform"] = platform;
            asked["ticket"] = ticket;
            return LoggedIn(await Post(PlatformLogin, asked));
        }

        public async Task<GatehouseResult> EnterCode(string requestId, string otp, string method)
        {
            var asked = new Dictionary<string, object> { { "request_id", requestId } };
            if (otp != "")
            {
                asked["otp"] = otp;
            }
            if (method != "")
            {
                asked["method"] = method;
            }
            return LoggedIn(await Post(Login, asked));
        }

        public async Task<GatehouseResult> Upgrade(byte[] deviceKey)
        {
            var asked = new Dictionary<string, object> { { "app_id", options.AppId }, { "intent", "upgrade" } };
            Answer answer = await Post(Guest, asked);
            if (answer.Text("challenge") == "")
            {
                return LoggedIn(answer);
            }
            Dictionary<string, object> registration = Registration();
            registration["intent"] = "upgrade";
            Sign(deviceKey, Ed25519.PublicKey(deviceKey), answer.Text("challenge"), registration);
            var ended = new GatehouseResult();
            GatehouseSession session = await Register(registration, ended);
            return session == null ? ended : await SignInWithBrowser(session);
        }

        private static void Sign(byte[] key, byte[] publicKey, string challenge, Dictionary<string, object> asked)
        {
            byte[] signature = Ed25519.Sign(key, publicKey, Encoding.UTF8.GetBytes(challenge));
            asked["device_key"] = Convert.ToBase64String(publicKey);
            asked["challenge"] = challenge;
            asked["signature"] = Convert.ToBase64String(signature);
        }

        /// <summary>The numbers, separated by dots; "" for a puzzle that cannot be solved, and when cancelled.</summary>
        private string Solution(Dictionary<string, object> puzzle)
        {
            double parts = MemberOf(puzzle, "parts") as double? ?? 0, bits = MemberOf(puzzle, "difficulty") as double? ?? 0;
            if (parts < 1 || parts > MostParts || bits < 0 || bits > MostBits)
            {
                return "";
            }
            var numbers = new uint[(int)parts];
            using (SHA256 sha256 = SHA256.Create())
            {
                byte[] seed = sha256.ComputeHash(Encoding.UTF8.GetBytes(MemberOf(puzzle, "puzzle") as string ?? ""));
                for (byte part = 0; part < numbers.Length; part++)
                {
                    while (!Solves(sha256, seed, part, numbers[part], (int)bits) && !cancel.IsCancellationRequested)
                    {
                        numbers[part]++;
                    }
                }
            }
            return string.Join(".", numbers.Select(number => number.ToString(CultureInfo.InvariantCulture)));
        }

        private static object MemberOf(Dictionary<string, object> members, string name)
        {
            object value;
            return members.TryGetValue(name, out value) ? value : null;
        }

        private static bool Solves(SHA256 sha256, byte[] seed, byte part, uint number, int bits)
        {
            var input = new byte[37];
            Array.Copy(seed, input, 32);
            input[32] = part;
            for (int at = 0; at < 4; at++)
            {
                input[33 + at] = (byte)(number >> (24 - 8 * at));
            }
            byte[] digest = sha256.ComputeHash(input);
            uint head = ((uint)digest[0] << 24) | ((uint)digest[1] << 16) | ((uint)digest[2] << 8) | digest[3];
            return bits == 0 || head >> (32 - bits) == 0;
        }

        private GatehouseResult LoggedIn(Answer answer)
        {
            string status = answer.Text("status"), reason;
            if (answer.Cancelled)
            {
                return Cancelled();
            }
            if (answer.Http == 200 && status == "OK")
            {
                return SignedIn(answer);
            }
            bool isKnown = Reasons.TryGetValue(status, out reason);
            if (answer.Http == 0 || answer.Http >= 500 || (answer.Http == 200 && !isKnown))
            {
                return Unreachable(answer);
            }
            GatehouseResult result = Refused(answer);
            result.Url = answer.Text("url");
            result.RequestId = answer.Text("request_id");
            result.Body = answer.Body;
            if (result.Reason == "")
            {
                result.Reason = answer.Http == 429 ? "throttled" : reason ?? "";
            }
            return result;
        }
    }
}

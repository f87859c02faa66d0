// SPDX-License-Identifier: Apache-2.0
//
// Sign a player in to a game with Gatehouse: copy this file into your game. C# 7.3 and .NET Standard 2.0, so also Unity
// and Mono.
//
//     var options = new GatehouseOptions { AppId = 50001, Factor = GatehouseLogin.DeviceFactor("device") };
//     GatehouseResult result = await GatehouseLogin.SignInAsync("https://sso.studio.example", options, cancellation);
//     if (result.Outcome == GatehouseOutcome.Ok) Greet(result.Nick);
//
// SignInAsync opens the system browser and ends when the player has confirmed there. It continues where it was called:
// called on Unity's main thread, it calls back there. So await it, and never block on its Result. Only DeviceFactor
// writes a file, and ToString of a result keeps its tokens to itself.
//
// Sign-in of guests and with a platform, and accounts for guests, are in GatehouseGuest.cs.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

/// <summary>
/// What the player needs: open Url on any device; Code and Qr (an SVG data URI) are there when asked for.
/// </summary>
public sealed class GatehouseSession
{
    public string Gsid { get; internal set; }
    public string Url { get; internal set; }
    public string Code { get; internal set; }
    public string Qr { get; internal set; }
    internal string Location { get; set; }
}

public enum GatehouseOutcome
{
    /// <summary>Signed in.</summary>
    Ok,

    /// <summary>
    /// The player said no, or the service did; Error is a record id that its operators can look up. For a banned player
    /// Reason is "banned": show PublicText, and Until (Unix time, 0 for no end). For guests and platforms it can be
    /// "second_factor": ask for a code and call EnterCodeAsync; "wrong_code": ask again; "no_account": sign in through the
    /// browser; "terms": open Url, then sign in again; "throttled"; "login_error": the key or ticket is not accepted.
    /// </summary>
    Refused,

    /// <summary>The game cancelled.</summary>
    Cancelled,

    /// <summary>The service cannot be reached; Error says how.</summary>
    Unreachable,
}

public sealed class GatehouseResult
{
    public GatehouseOutcome Outcome { get; internal set; }
    public string UserId { get; internal set; } = "";
    public string Nick { get; internal set; } = "";
    public string Jwt { get; internal set; } = "";
    public string Token { get; internal set; } = "";
    public string Error { get; internal set; } = "";
    public string Reason { get; internal set; } = "";
    public string PublicText { get; internal set; } = "";
    public long Until { get; internal set; }

    /// <summary>Where the player accepts the terms.</summary>
    public string Url { get; internal set; } = "";

    /// <summary>For EnterCodeAsync; the methods are in Body.</summary>
    public string RequestId { get; internal set; } = "";

    /// <summary>Everything the service told, as JSON.</summary>
    public string Body { get; internal set; } = "";

    public override string ToString()
    {
        return "GatehouseResult(" + Outcome + ", " + UserId + ", " + Error + ")";
    }
}

public sealed class GatehouseOptions
{
    public long AppId { get; set; }
    public string Factor { get; set; } = "";
    public bool Code { get; set; }
    public bool Qr { get; set; }

    /// <summary>Further fields of getGsid.</summary>
    public IDictionary<string, string> More { get; } = new Dictionary<string, string>();

    /// <summary>Called instead of opening the browser. In Unity: session => Application.OpenURL(session.Url).</summary>
    public Action<GatehouseSession> Show { get; set; }

    /// <summary>Called with the new state: waiting, opened, signing_in, confirmed, cancelled.</summary>
    public Action<string> OnState { get; set; }

    /// <summary>A poll is held for up to 30 seconds.</summary>
    public TimeSpan PollTimeout { get; set; } = TimeSpan.FromSeconds(40);

    /// <summary>How long without a whole answer until the service counts as unreachable.</summary>
    public TimeSpan Patience { get; set; } = TimeSpan.FromSeconds(90);
}

public static partial class GatehouseLogin
{
    private const uint OwnerOnly = 0x180; // rw-------
    private static readonly Regex FactorText = new Regex(@"\A[0-9a-f]{64}\z");
    // https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
    private static readonly Regex Address = new Regex(
        @"\A(?:https://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])|http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?"
        + @"(?:/[A-Za-z0-9._~/-]*)?(?<query>\?[A-Za-z0-9._~%&=+/-]*)?\z");

    /// <summary>
    /// Throws ArgumentException when baseUrl is neither https nor on this machine; all else is told by the outcome.
    /// </summary>
    public static async Task<GatehouseResult> SignInAsync(
        string baseUrl, GatehouseOptions options, CancellationToken cancel = default(CancellationToken))
    {
        using (var client = new Client(baseUrl, options, cancel))
        {
            var ended = new GatehouseResult();
            GatehouseSession session = await client.Register(ended);
            return session == null ? ended : await client.SignInWithBrowser(session);
        }
    }

    /// <summary>Opens the system browser. No shell ever sees the address.</summary>
    public static bool OpenBrowser(string url)
    {
        if (!Address.IsMatch(url))
        {
            return false;
        }
        var start = new ProcessStartInfo(url) { UseShellExecute = true };
        if (!RuntimeInformation.IsOSPlatform(OSPlatform.Windows))
        {
            string opener = RuntimeInformation.IsOSPlatform(OSPlatform.OSX) ? "open" : "xdg-open";
            start = new ProcessStartInfo(opener, url) { UseShellExecute = false };
        }
        try
        {
            using (Process.Start(start))
            {
                return true;
            }
        }
        catch (SystemException)
        {
            return false;
        }
    }

    /// <summary>
    /// The secret of this device. It is made at the first call, in a file that only the player can read.
    /// </summary>
    public static string DeviceFactor(string path)
    {
        string factor = File.Exists(path) ? File.ReadAllText(path).Trim() : "";
        if (FactorText.IsMatch(factor))
        {
            return factor;
        }
        var bytes = new byte[32];
        using (RandomNumberGenerator random = RandomNumberGenerator.Create())
        {
            random.GetBytes(bytes);
        }
        factor = string.Concat(bytes.Select(one => one.ToString("x2", CultureInfo.InvariantCulture)));
        string made = path + "." + factor.Substring(0, 8); // renamed, so that the file is never half-written
        using (new FileStream(made, FileMode.CreateNew))
        {
        }
        if (!RuntimeInformation.IsOSPlatform(OSPlatform.Windows) && ChangeMode(made, OwnerOnly) != 0)
        {
            throw new IOException("cannot protect " + made);
        }
        File.WriteAllText(made, factor);
        File.Delete(path);
        File.Move(made, path);
        return factor;
    }

    [DllImport("libc", EntryPoint = "chmod", SetLastError = true)]
    private static extern int ChangeMode(string path, uint mode);

    private sealed class Answer
    {
        public int Http; // 0 when there was no answer
        public bool TimedOut;
        public bool Cancelled;
        public string Error = "";
        public string Body = "";
        public string Location = "";
        public string RetryAfter = "";
        public Dictionary<string, object> Members = new Dictionary<string, object>();

        public string Text(string name)
        {
            object value;
            return Members.TryGetValue(name, out value) && value is string ? (string)value : "";
        }

        public long Time(string name)
        {
            object value;
            bool usable = Members.TryGetValue(name, out value) && value is double && (double)value >= 0 && (double)value < 1e12;
            return usable ? (long)(double)value : 0;
        }
    }

    private sealed partial class Client : IDisposable
    {
        private const string GameSession = "/proxy/api/gameSession/";
        private const int LongestAnswer = 1 << 20;
        private const int LongestPause = 90; // seconds: an unpolled session ends after 120
        private static readonly TimeSpan ShortTimeout = TimeSpan.FromSeconds(15); // for everything that is not held
        private static readonly TimeSpan LeastTimeout = TimeSpan.FromSeconds(1); // a last try is still a try
        private static readonly TimeSpan SessionLives = TimeSpan.FromMinutes(20);
        private static readonly Regex LocationValue = new Regex(@"[?&]location=([A-Za-z0-9._~%+/=-]{1,500})");

        private readonly string baseUrl;
        private readonly GatehouseOptions options;
        private readonly CancellationToken cancel;
        private readonly HttpClient http;
        private readonly Stopwatch silence = Stopwatch.StartNew();
        private string state = "";

        public Client(string baseUrl, GatehouseOptions options, CancellationToken cancel)
        {
            Match address = Address.Match(baseUrl);
            if (!address.Success || address.Groups["query"].Success)
            {
                throw new ArgumentException("must be https, or http on this machine", nameof(baseUrl));
            }
            this.baseUrl = baseUrl.TrimEnd('/');
            this.options = options;
            this.cancel = cancel;
            var handler = new HttpClientHandler { AllowAutoRedirect = false, UseCookies = false };
            handler.UseProxy = baseUrl.StartsWith("https:", StringComparison.Ordinal); // none leads to this machine
            http = new HttpClient(handler) { Timeout = Timeout.InfiniteTimeSpan };
            http.MaxResponseContentBufferSize = LongestAnswer;
            http.DefaultRequestHeaders.ConnectionClose = true; // an old connection may be dead without anyone knowing
            http.DefaultRequestHeaders.TryAddWithoutValidation("User-Agent", "gatehouse-login/1 (C#)");
        }

        public void Dispose()
        {
            http.Dispose();
        }

        public Task<GatehouseSession> Register(GatehouseResult ended)
        {
            return Register(Registration(), ended);
        }

        private async Task<GatehouseSession> Register(Dictionary<string, object> registration, GatehouseResult ended)
        {
            Answer answer = await Post(GameSession + "getGsid", registration);
            Match location = LocationValue.Match(answer.Location);
            var session = new GatehouseSession
            {
                Gsid = answer.Text("gsid"),
                Url = answer.Text("url"),
                Code = answer.Text("code"),
                Qr = answer.Text("qr"),
                Location = location.Success ? location.Groups[1].Value : "",
            };
            if (answer.Text("status") == "OK" && session.Gsid != "" && Address.IsMatch(session.Url))
            {
                return session;
            }
            GatehouseResult result = Unreachable(answer);
            if (answer.Cancelled)
            {
                result = Cancelled();
            }
            else if (answer.Text("status") == "ERROR")
            {
                result = Refused(answer);
            }
            ended.Outcome = result.Outcome;
            ended.Error = result.Error;
            return null;
        }

        /// <summary>From the registered session to its end.</summary>
        public async Task<GatehouseResult> SignInWithBrowser(GatehouseSession session)
        {
            string closing = "Error"; // also when the game's own callbacks throw
            try
            {
                if (options.Show == null)
                {
                    OpenBrowser(session.Url);
                }
                else
                {
                    options.Show(session);
                }
                Tell("waiting");
                GatehouseResult result = await Wait(session);
                closing = result.Outcome == GatehouseOutcome.Ok ? "Success" : "Error";
                closing = result.Outcome == GatehouseOutcome.Refused ? null : closing; // it has ended by itself
                return result;
            }
            finally
            {
                if (closing != null)
                {
                    var asked = new Dictionary<string, object> { { "gsid", session.Gsid }, { "status", closing } };
                    await Send(GameSession + "closeGsid", Json.Write(asked), session.Location, ShortTimeout, CancellationToken.None);
                }
            }
        }

        private async Task<GatehouseResult> Wait(GatehouseSession session)
        {
            string body = Json.Write(new Dictionary<string, object> { { "gsid", session.Gsid }, { "states", "1" } });
            Stopwatch life = Stopwatch.StartNew();
            silence.Restart();
            TimeSpan pause = TimeSpan.FromSeconds(1);
            while (life.Elapsed < SessionLives)
            {
                Answer answer = await Send(GameSession + "getGsidResult", body, session.Location, options.PollTimeout, cancel);
                GatehouseResult result = Ending(answer);
                if (result != null)
                {
                    return result;
                }
                int? seconds = Pause(answer);
                TimeSpan beforeNext = TimeSpan.FromSeconds(seconds ?? 0);
                if (seconds != null)
                {
                    silence.Restart();
                    pause = TimeSpan.FromSeconds(1);
                }
                else if (PatienceLeft() <= TimeSpan.Zero)
                {
                    return Unreachable(answer);
                }
                else if (!answer.TimedOut)
                {
                    beforeNext = Shorter(pause, PatienceLeft());
                    pause = Shorter(pause + pause, TimeSpan.FromSeconds(8));
                }
                if (!await Rest(beforeNext))
                {
                    return Cancelled();
                }
            }
            return Unreachable(new Answer());
        }

        private Dictionary<string, object> Registration()
        {
            var asked = new Dictionary<string, object> { { "app_id", options.AppId } };
            if (!string.IsNullOrEmpty(options.Factor))
            {
                asked["factor"] = options.Factor;
            }
            if (options.Code)
            {
                asked["code"] = "1";
            }
            if (options.Qr)
            {
                asked["qr"] = "1";
            }
            foreach (KeyValuePair<string, string> field in options.More)
            {
                asked[field.Key] = field.Value;
            }
            return asked;
        }

        private Task<Answer> Post(string path, Dictionary<string, object> asked)
        {
            return Send(path, Json.Write(asked), "", ShortTimeout, cancel);
        }

        /// <summary>Null when polling goes on.</summary>
        private GatehouseResult Ending(Answer answer)
        {
            string status = answer.Text("status");
            if (answer.Cancelled)
            {
                return Cancelled();
            }
            if (answer.Http == 429)
            {
                return Pause(answer) > LongestPause ? Refused(answer) : null;
            }
            if (answer.Http == 403 || (status == "ERROR" && answer.Http < 500)) // 5xx may pass
            {
                Tell(answer.Text("state"));
                return Refused(answer);
            }
            if (answer.Http != 200 || status != "OK" && status != "CANCELLED")
            {
                return null;
            }
            Tell(status == "OK" ? "confirmed" : "cancelled");
            return status == "OK" ? SignedIn(answer) : Cancelled();
        }

        /// <summary>Seconds until the next poll; null when there was no answer.</summary>
        private int? Pause(Answer answer)
        {
            if (answer.Http == 429)
            {
                return Seconds(answer.RetryAfter, 60);
            }
            if (answer.Http != 200 || answer.Text("status") != "RETRY")
            {
                return null;
            }
            Tell(answer.Text("state"));
            object delay;
            return answer.Members.TryGetValue("delay", out delay) && delay is double ? Seconds(delay.ToString(), 1) : 1;
        }

        private static int Seconds(string digits, int otherwise)
        {
            int seconds;
            bool whole = int.TryParse(digits, NumberStyles.None, CultureInfo.InvariantCulture, out seconds);
            return whole ? seconds : otherwise;
        }

        private void Tell(string now)
        {
            if (now != "" && now != state)
            {
                state = now;
                options.OnState?.Invoke(now);
            }
        }

        private GatehouseResult SignedIn(Answer answer)
        {
            return new GatehouseResult
            {
                Outcome = GatehouseOutcome.Ok,
                UserId = answer.Text("user_id"),
                Nick = answer.Text("nick"),
                Jwt = answer.Text("jwt"),
                Token = answer.Text("token"),
                Body = answer.Body,
            };
        }

        private static GatehouseResult Refused(Answer answer)
        {
            return new GatehouseResult
            {
                Outcome = GatehouseOutcome.Refused,
                Error = answer.Text("error"),
                Reason = answer.Text("reason"),
                PublicText = answer.Text("public_text"),
                Until = answer.Time("until"),
            };
        }

        private static GatehouseResult Cancelled()
        {
            return new GatehouseResult { Outcome = GatehouseOutcome.Cancelled };
        }

        private static GatehouseResult Unreachable(Answer answer)
        {
            string error = answer.Error == "" ? "HTTP " + answer.Http : answer.Error;
            return new GatehouseResult { Outcome = GatehouseOutcome.Unreachable, Error = error };
        }

        /// <summary>False once the game has cancelled.</summary>
        private async Task<bool> Rest(TimeSpan time)
        {
            try
            {
                await Task.Delay(time, cancel);
                return true;
            }
            catch (OperationCanceledException)
            {
                return false;
            }
        }

        private TimeSpan PatienceLeft()
        {
            TimeSpan left = options.Patience - silence.Elapsed;
            return left > TimeSpan.Zero ? left : TimeSpan.Zero;
        }

        private static TimeSpan Shorter(TimeSpan one, TimeSpan other)
        {
            return one < other ? one : other;
        }

        private async Task<Answer> Send(
            string path, string body, string location, TimeSpan timeout, CancellationToken cancellation)
        {
            string address = baseUrl + path + (location == "" ? "" : "?location=" + location);
            using (CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellation))
            using (var content = new StringContent(body, Encoding.UTF8, "application/json"))
            {
                TimeSpan left = PatienceLeft();
                limit.CancelAfter(Shorter(timeout, left > LeastTimeout ? left : LeastTimeout));
                try
                {
                    using (HttpResponseMessage response = await http.PostAsync(address, content, limit.Token))
                    {
                        return await Read(response);
                    }
                }
                catch (OperationCanceledException)
                {
                    bool byGame = cancellation.IsCancellationRequested;
                    return new Answer { Cancelled = byGame, TimedOut = !byGame, Error = "timeout" };
                }
                catch (Exception failure) when (failure is HttpRequestException || failure is System.IO.IOException)
                {
                    return new Answer { Error = (failure.InnerException ?? failure).GetType().Name };
                }
            }
        }

        private static async Task<Answer> Read(HttpResponseMessage response)
        {
            var answer = new Answer { Http = (int)response.StatusCode };
            answer.Body = await response.Content.ReadAsStringAsync();
            answer.Location = Header(response, "Location");
            answer.RetryAfter = Header(response, "Retry-After");
            answer.Members = Json.Read(answer.Body) ?? answer.Members;
            return answer;
        }

        private static string Header(HttpResponseMessage response, string name)
        {
            IEnumerable<string> values;
            return response.Headers.TryGetValues(name, out values) ? values.FirstOrDefault() ?? "" : "";
        }
    }

    /// <summary>The members of one object; of what is nested, objects are read and arrays only checked.</summary>
    private sealed class Json
    {
        private const int Deepest = 32;
        private static readonly Regex Number = new Regex(@"\G-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");
        private static readonly Regex Hex = new Regex(@"\G[0-9A-Fa-f]{4}");

        private readonly string text;
        private int at;

        private Json(string text)
        {
            this.text = text;
        }

        /// <summary>Strings, numbers (double), booleans and objects by name; null when it is not one JSON object.</summary>
        public static Dictionary<string, object> Read(string text)
        {
            try
            {
                var json = new Json(text);
                Dictionary<string, object> found = json.Members(0);
                json.Blanks();
                return json.at == text.Length ? found : null;
            }
            catch (FormatException)
            {
                return null;
            }
        }

        public static string Write(Dictionary<string, object> members)
        {
            return "{" + string.Join(",", members.Select(one => Quote(one.Key) + ":" + Written(one.Value))) + "}";
        }

        private static string Written(object value)
        {
            return value is long ? ((long)value).ToString(CultureInfo.InvariantCulture) : Quote((string)value);
        }

        private static string Quote(string value)
        {
            var quoted = new StringBuilder("\"");
            foreach (char one in value)
            {
                bool plain = one >= ' ' && one != '"' && one != '\\';
                quoted.Append(plain ? one.ToString() : "\\u" + ((int)one).ToString("x4"));
            }
            return quoted.Append('"').ToString();
        }

        private void Blanks()
        {
            while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0)
            {
                at++;
            }
        }

        private char Next()
        {
            Blanks();
            return at < text.Length ? text[at] : '\0';
        }

        private bool Take(char mark)
        {
            bool there = Next() == mark && at < text.Length;
            at += there ? 1 : 0;
            return there;
        }

        private void Need(bool met)
        {
            if (!met)
            {
                throw new FormatException();
            }
        }

        private Dictionary<string, object> Members(int depth)
        {
            var found = new Dictionary<string, object>();
            Need(depth <= Deepest && Take('{'));
            if (Take('}'))
            {
                return found;
            }
            do
            {
                Need(Next() == '"');
                string name = String();
                Need(Take(':'));
                found[name] = Any(depth + 1);
            }
            while (Take(','));
            Need(Take('}'));
            return found;
        }

        private object Elements(int depth)
        {
            Need(depth <= Deepest && Take('['));
            if (Take(']'))
            {
                return null;
            }
            do
            {
                Any(depth + 1);
            }
            while (Take(','));
            Need(Take(']'));
            return null;
        }

        private object Any(int depth)
        {
            switch (Next())
            {
                case '{':
                    return Members(depth);
                case '[':
                    return Elements(depth);
                case '"':
                    return String();
                case 't':
                    return Word("true", true);
                case 'f':
                    return Word("false", false);
                case 'n':
                    return Word("null", null);
                default:
                    Match number = Number.Match(text, at);
                    Need(number.Success);
                    at += number.Length;
                    return double.Parse(number.Value, CultureInfo.InvariantCulture);
            }
        }

        private object Word(string word, object value)
        {
            Need(string.CompareOrdinal(text, at, word, 0, word.Length) == 0);
            at += word.Length;
            return value;
        }

        private string String()
        {
            var read = new StringBuilder();
            for (at++; at < text.Length && text[at] != '"'; at++)
            {
                Need(text[at] >= ' ');
                read.Append(text[at] == '\\' ? Escaped() : text[at]);
            }
            Need(Take('"'));
            return read.ToString();
        }

        private char Escaped()
        {
            at++;
            Need(at < text.Length);
            if (text[at] == 'u')
            {
                Match hex = Hex.Match(text, at + 1);
                Need(hex.Success);
                at += 4;
                return (char)int.Parse(hex.Value, NumberStyles.HexNumber, CultureInfo.InvariantCulture);
            }
            int which = "\"\\/bfnrt".IndexOf(text[at]);
            Need(which >= 0);
            return "\"\\/\b\f\n\r\t"[which];
        }
    }
}

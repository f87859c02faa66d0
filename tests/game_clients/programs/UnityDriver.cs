// A game for the tests: follows its arguments and prints what the package reports.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Gatehouse;
using UnityEngine;

public static class UnityDriver
{
    private static Dictionary<string, string> asked;
    private static string requestId = ""; // of the last refusal
    private static readonly CancellationTokenSource Cancel = new CancellationTokenSource();

    public static void Main(string[] words)
    {
        Console.OutputEncoding = new UTF8Encoding(false);
        asked = words.Skip(1).Select(word => word.Split(new[] { '=' }, 2)).ToDictionary(pair => pair[0], pair => pair[1]);
        GatehouseClient client = new GameObject("game").AddComponent<GatehouseClient>();
        client.AppId = (long)Number("app_id", 0);
        client.StateChanged += OnState;
        var watching = new Timer(_ => CancelIfAsked(), null, 0, 20);
        Task playing = Play(client, words[0].Split(','));
        Engine.RunFramesUntil(() => playing.IsCompleted);
        playing.GetAwaiter().GetResult();
        watching.Dispose();
        Say("end", "");
    }

    private static async Task Play(GatehouseClient client, string[] baseUrls)
    {
        foreach (string baseUrl in baseUrls)
        {
            client.BaseUrl = baseUrl;
            foreach (string action in (asked.ContainsKey("do") ? asked["do"] : "sign_in").Split(','))
            {
                try
                {
                    await Act(client, action);
                }
                catch (ArgumentException)
                {
                    Say("outcome", "invalid");
                }
            }
        }
    }

    private static async Task Act(GatehouseClient client, string action)
    {
        switch (action)
        {
            case "sign_in":
                Report(await client.SignInAsync(Options(), Cancel.Token));
                break;
            case "guest":
                Report(await client.SignInGuestAsync(Options(), Cancel.Token));
                break;
            case "platform":
                Report(await client.SignInPlatformAsync("steam", asked["ticket"], Options(), Cancel.Token));
                break;
            case "code":
                Report(await client.EnterCodeAsync(requestId, asked["otp"], Options(), "", Cancel.Token));
                break;
            case "upgrade":
                Report(await client.UpgradeAsync(Options(), Cancel.Token));
                break;
            case "has_guest":
                Say("has_guest", client.HasGuest().ToString().ToLowerInvariant());
                break;
            case "resume":
                Report(await client.ResumeAsync());
                break;
            case "check":
                GatehousePermissions found = await client.CheckAsync(asked["rules"].Split(','));
                Say("allowed", string.Join(",", found.Allowed).ToLowerInvariant());
                Say("outcome", NameOf(found.Outcome));
                Say("ban", found.Reason + " " + found.PublicText + " " + found.Until);
                break;
            case "is_allowed":
                Say("is_allowed", (await client.IsAllowedAsync(asked["rules"])).ToString().ToLowerInvariant());
                break;
            case "sign_out":
                client.SignOut();
                break;
            case "sign":
                byte[] seed = Bytes(asked["seed"]), key = Ed25519.PublicKey(seed);
                Say("public", Hex(key));
                Say("signature", Hex(Ed25519.Sign(seed, key, Bytes(asked["message"]))));
                break;
        }
    }

    private static byte[] Bytes(string hex)
    {
        return Enumerable.Range(0, hex.Length / 2).Select(at => Convert.ToByte(hex.Substring(2 * at, 2), 16)).ToArray();
    }

    private static string Hex(byte[] bytes)
    {
        return string.Concat(bytes.Select(one => one.ToString("x2")));
    }

    private static string NameOf(GatehouseOutcome outcome)
    {
        return outcome == GatehouseOutcome.SignedOut ? "signed_out" : outcome.ToString().ToLowerInvariant();
    }

    private static GatehouseOptions Options()
    {
        var options = new GatehouseOptions
        {
            Factor = asked.ContainsKey("factor") ? asked["factor"] : "",
            Code = asked.ContainsKey("code"),
            Qr = asked.ContainsKey("qr"),
            PollTimeout = (float)Number("poll_timeout", 40),
            Patience = (float)Number("patience", 60),
        };
        options.Factor = options.Factor == "device" ? null : options.Factor;
        if (asked.ContainsKey("distr"))
        {
            options.More["distr"] = asked["distr"];
        }
        if (!asked.ContainsKey("default"))
        {
            options.Show = Show;
        }
        return options;
    }

    private static void Report(GatehouseResult result)
    {
        requestId = result.RequestId == "" ? requestId : result.RequestId;
        Say("outcome", NameOf(result.Outcome));
        Say("user_id", result.UserId);
        Say("nick", result.Nick);
        Say("jwt", result.Jwt);
        Say("error", result.Error);
        Say("ban", result.Reason + " " + result.PublicText + " " + result.Until);
        Say("printed", result.ToString());
    }

    private static void Show(GatehouseSession session)
    {
        Say("link", session.Url);
        Say("code", session.Code);
        Say("qr", session.Qr.Substring(0, Math.Min(session.Qr.Length, 26)));
        if (asked.ContainsKey("browser"))
        {
            Application.OpenURL(session.Url);
        }
    }

    private static void OnState(string state)
    {
        Say("state", state);
    }

    private static void CancelIfAsked()
    {
        if (asked.ContainsKey("cancel") && File.Exists(asked["cancel"]))
        {
            Cancel.Cancel();
        }
    }

    private static double Number(string name, double otherwise)
    {
        return asked.ContainsKey(name) ? double.Parse(asked[name]) : otherwise;
    }

    private static void Say(string name, string told)
    {
        Console.WriteLine(name + " " + told);
        Console.Out.Flush();
    }
}

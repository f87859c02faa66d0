using Gatehouse;
using UnityEngine;

// Add it to a game object together with a Gatehouse Client.
[RequireComponent(typeof(GatehouseClient))]
public sealed class SignInExample : MonoBehaviour
{
    private async void Start()
    {
        GatehouseClient gatehouse = GetComponent<GatehouseClient>();
        gatehouse.StateChanged += state => Debug.Log("... " + state);
        GatehouseResult result = await gatehouse.ResumeAsync();
        if (result.Outcome == GatehouseOutcome.SignedOut)
        {
            result = await gatehouse.SignInAsync();
        }
        if (result.Outcome != GatehouseOutcome.Ok)
        {
            Debug.Log(result.IsBanned ? "Banned: " + result.PublicText : "Not signed in: " + result);
            return;
        }
        Debug.Log("Hello, " + result.Nick);
        Debug.Log("May ban others: " + await gatehouse.IsAllowedAsync("app.can_ban"));
    }
}
